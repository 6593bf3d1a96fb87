"""A Program as CUDA for other sources to call, without registration and compiled images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.launcher import functions_of
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas, Part
from opwright.codegen.cpp.program import emit_launcher
from opwright.codegen.cuda.kernel import CudaKernel
from opwright.codegen.cuda.program import HOST_HEADER, CudaKernels, parts_for_gpus
from opwright.codegen.cuda.versions import kernel_table
from opwright.codegen.placeholders import plain_refusals
from opwright.ir.program import Program


@dataclass(frozen=True, slots=True)
class CudaPieces:
    """The source of a Program.

    Attributes:
        arguments: The types of kernels' arguments, for the device and for the host.
        kernels: All functions of the device.
        entries: The kernels among them, each with the type of its arguments.
        launcher: Tables of kernels, and a launcher that is not static and has the Program's name.
    """

    arguments: tuple[str, ...]
    kernels: tuple[str, ...]
    entries: tuple[tuple[str, str], ...]
    launcher: str


def emit_pieces(program: Program, formulas: Formulas, found: str) -> CudaPieces:
    """Write the kernels of a Program, and their launcher.

    Args:
        program: A Program after the passes.
        formulas: Comment lines for a kernel.
        found: How a launcher refers to a kernel, with a place for its name.

    Raises:
        NoKernel: As `emit_cuda`.
    """
    with plain_refusals():
        parts = [(part, _Linked(part, found)) for part in parts_for_gpus(program, formulas)]
        draft, _ = emit_launcher(program, HOST_HEADER, parts)
    every: list[CudaKernel] = [kernel for _, part in (*parts[1:], parts[0]) for kernel in part.emitted.values()]
    names = allocate([draft, *(text for kernel in every for text in (kernel.arguments, kernel.functions))], CPP)
    return CudaPieces(
        arguments=tuple(broken(names.spell(kernel.arguments)) for kernel in every),
        kernels=tuple(broken(names.spell(kernel.functions)) for kernel in every),
        entries=tuple(
            (names.spell(version), names.spell(kernel.type)) for kernel in every for version in kernel.versions
        ),
        launcher=functions_of(broken(names.spell(draft)), program.name),
    )


class _Linked(CudaKernels):
    """Kernels that the linker finds; their types are declared elsewhere."""

    def __init__(self, part: Part, found: str) -> None:
        super().__init__(part)
        self.found = found

    def definitions(self, _: Program) -> Sequence[str]:
        return [kernel_table(kernel.name, kernel.versions, self.found) for kernel in self.emitted.values()]
