"""A Program as CUDA: the source of its kernels for the device, and that of its launcher for the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opwright.codegen.allocator import Names, allocate
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.loops.kernels import iotas_of, kernel_names, numbers_of
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas, Part, part_of
from opwright.codegen.cpp.program import digest, emit_launcher
from opwright.codegen.cuda.kernel import CudaKernel, emit_kernel
from opwright.codegen.placeholders import plain_refusals
from opwright.ir.program import Kernel, Program, programs_of
from opwright.passes.order import finish

DEVICE_HEADER, HOST_HEADER = "opwright/cuda/kernel.h", "opwright/cuda/launches.h"


@dataclass(frozen=True, slots=True)
class CudaSource:
    """An emitted pair of sources.

    Attributes:
        name: The operator that the launcher registers in the namespace `opwright_kernels`; it ends in a digest of both.
        device: CUDA C++ with the kernels; empty if there are none.
        host: C++ with the launcher.
    """

    name: str
    device: str
    host: str


def emit_cuda(program: Program, formulas: Formulas = lambda _: (), header: str = "") -> CudaSource:
    """Write a Program as CUDA.

    Args:
        program: A Program after the passes.
        formulas: Comment lines for a kernel.
        header: Comment lines for the top of both sources.

    Raises:
        NoKernel: If a kernel reads or writes at places that are not affine in its axes, or has too many operands.
    """
    with plain_refusals():
        parts = [(part, CudaKernels(part)) for part in parts_for_gpus(program, formulas)]
        draft, registration = emit_launcher(program, HOST_HEADER, parts)
    written = [text for _, kernels in (*parts[1:], parts[0]) for text in kernels.device_texts]
    names = allocate([*written, draft, registration("")], CPP)  # the launcher knows kernels and arguments by name
    device = device_text(written, names, header)
    body = header + broken(names.spell(draft))
    name = f"{program.name}_{digest(device + body)}"
    return CudaSource(name, device, f"{body}\n{broken(names.spell(registration(name)))}")


def device_text(written: Sequence[str], names: Names, header: str) -> str:
    """The source for the device; empty if there is nothing in it.

    Args:
        written: Drafts of kernels.
        names: The names of their placeholders.
        header: Comment lines for the top.
    """
    if not written:
        return ""
    opening = f'#include "{DEVICE_HEADER}"\n\nnamespace opwright::emitted {{'
    return header + broken(names.spell("\n\n".join([opening, *written, "}  // namespace opwright::emitted\n"])))


def parts_for_gpus(program: Program, formulas: Formulas) -> list[Part]:
    """A Program without its cases, and each case, ready for emission to GPUs."""
    return [part_of(part, formulas) for part in programs_of(finish(program, "cuda"))]


class CudaKernels:
    """Kernels for the device, and their launchers."""

    def __init__(self, part: Part) -> None:
        program = part.program
        names, iotas, sizes = kernel_names(program), iotas_of(program), numbers_of(program)
        kernels = [step for step in program.steps if isinstance(step, Kernel)]
        self.emitted: dict[int, CudaKernel] = {
            id(kernel): emit_kernel(kernel, names[id(kernel)], remark, iotas, sizes)
            for kernel, remark in zip(kernels, part.remarks, strict=True)
        }

    @property
    def device_texts(self) -> Sequence[str]:
        """The part of each in the device source."""
        return [kernel.device for kernel in self.emitted.values()]

    def definitions(self, _: Program) -> Sequence[str]:
        """The part of each in the launcher's source."""
        return [kernel.host for kernel in self.emitted.values()]

    def launch(self, kernel: Kernel) -> Sequence[str]:
        """The lines of the launcher that run a kernel."""
        return self.emitted[id(kernel)].launch

    def entering(self) -> Sequence[str]:
        """The first lines of a call, once its tensors are `given`."""
        return ("const cuda::Call call_on_device(given);",)

    def memory(self, _: Program) -> Mapping[str, str]:
        """None: every result has memory of its own."""
        return {}
