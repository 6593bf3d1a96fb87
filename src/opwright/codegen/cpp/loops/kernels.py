"""The kernels of a Program as C++: their functions, and what is a variable of the launcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from opwright.codegen.cpp.dying import memory_of_the_dying
from opwright.codegen.cpp.loops.kernel import KernelEmitter
from opwright.codegen.cpp.loops.shared_functions import SharedFunctions
from opwright.codegen.placeholders import prefixed
from opwright.ir import program as ir


class CppKernels:
    """Row functions, and loops that call them for every row.

    Kernels whose functions differ only in names share them: unrolled steps and equal layers are compiled once.

    Args:
        remarks: The comment lines of each kernel.
        shared: The functions of the source.
        replaced: For results that replace an input: that input.
    """

    def __init__(
        self,
        remarks: Sequence[Sequence[str]],
        shared: SharedFunctions,
        replaced: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.remarks = remarks
        self.shared = shared
        self.replaced = replaced
        self.names: dict[int, str] = {}
        self.emitters: dict[int, KernelEmitter] = {}
        self.numbers: Set[str] = set()

    def definitions(self, program: ir.Program) -> Sequence[str]:
        """The functions of its kernels."""
        self.names = {key: f"{name}_row" for key, name in kernel_names(program).items()}
        self.numbers, iotas = numbers_of(program), iotas_of(program)
        kernels = [step for step in program.steps if isinstance(step, ir.Kernel)]
        self.emitters = {id(kernel): KernelEmitter(kernel, iotas) for kernel in kernels}
        new = []
        for kernel, remark in zip(kernels, self.remarks, strict=True):
            name = self.names[id(kernel)]
            *parts, functions = self.emitters[id(kernel)].functions(name, remark, self.shared)
            self.names[id(kernel)] = self.shared.name_of(functions, name)
            new += parts
            if self.names[id(kernel)] == name:
                new.append(functions)
        return new

    def launch(self, kernel: ir.Kernel) -> Sequence[str]:
        """The lines of the launcher that run a kernel."""
        return self.emitters[id(kernel)].launch(self.names[id(kernel)], self.numbers)

    def entering(self) -> Sequence[str]:
        """No lines: a call needs nothing before it."""
        return ()

    def memory(self, program: ir.Program) -> Mapping[str, str]:
        """By the names of what kernels compute: the buffers whose memory they take."""
        return memory_of_the_dying(program, self.replaced)


def kernel_names(program: ir.Program) -> dict[int, str]:
    """The names of a Program's kernels in a source, by identity."""
    kernels = [step for step in program.steps if isinstance(step, ir.Kernel)]
    return {id(k): program.name if len(kernels) == 1 else prefixed(f"{program.name}_", k.name) for k in kernels}


def numbers_of(program: ir.Program) -> set[str]:
    """Buffers that are variables of the launcher."""
    given = {buffer.name for buffer in program.inputs if buffer.by_value}
    return given | {step.target.name for step in program.steps if isinstance(step, ir.Number)}


def iotas_of(program: ir.Program) -> set[str]:
    """Buffers that are iotas: they take no memory."""
    return {step.target.name for step in program.steps if isinstance(step, ir.Iota)}
