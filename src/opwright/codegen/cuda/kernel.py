"""A kernel as CUDA: device code with the arithmetic, and the lines of the launcher that launch it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from opwright.codegen.cuda.arguments import Arguments
from opwright.codegen.cuda.columns import columns_arguments, columns_functions, columns_launch, columns_suffixes
from opwright.codegen.cuda.points import points_arguments, points_batch, points_functions, points_versions
from opwright.codegen.cuda.rows import RowsEmitter, rows_arguments
from opwright.codegen.cuda.versions import kernel_table
from opwright.errors import NoKernel
from opwright.ir.program import Gather, Kernel

_MOST_BYTES_OF_ARGUMENTS = 4096


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """The source of one kernel.

    Attributes:
        name: What it is called.
        type: The name of the type of its arguments.
        arguments: The type of its arguments, for the device and for the host.
        functions: Its functions, for the device.
        versions: Its entry points on the device, in the order in which the launcher knows them.
        launch: The lines that launch it.
    """

    name: str
    type: str
    arguments: str
    functions: str
    versions: tuple[str, ...]
    launch: tuple[str, ...]

    @property
    def device(self) -> str:
        """Its part of the device source."""
        return f"{self.arguments}\n\n{self.functions}"

    @property
    def host(self) -> str:
        """Its part of the launcher's source, above the launcher."""
        return f"{self.arguments}\n\n{kernel_table(self.name, self.versions)}"


def emit_kernel(kernel: Kernel, name: str, formulas: Sequence[str], iotas: Set[str], sizes: Set[str]) -> CudaKernel:
    """Write a kernel.

    Args:
        kernel: A fused kernel whose loads are all bound to names; if it has rows, none of its stores reduces.
        name: Its name on the device.
        formulas: Comment lines to put above it.
        iotas: Buffers that are iotas.
        sizes: Buffers that are variables of the launcher.

    Raises:
        NoKernel: If it reads or writes at places that are not affine in its axes, or at too many, or if it gathers.
    """
    if any(isinstance(let, Gather) for let in kernel.lets):
        fact = "a kernel gathers, and would have to wait for the GPU to check that its indices are in range"
        raise NoKernel(fact, hint="index the tensor outside of the operator")
    if kernel.row_axes:
        return _emit_rows(kernel, name, formulas, iotas, sizes)
    if any(store.reduction is not None for store in kernel.stores):
        arguments = columns_arguments(kernel, name, iotas, sizes)
        functions, call = columns_functions(kernel, arguments, formulas), columns_launch(kernel, arguments)
        return _assembled(arguments, functions, columns_suffixes(kernel, arguments), call, reducing=True)
    arguments = points_arguments(kernel, name, iotas, sizes)
    suffixes = [version.suffix for version in points_versions(arguments)]
    call = f"launch_points<{arguments.width}, {points_batch(arguments)}>"
    return _assembled(arguments, points_functions(kernel, arguments, formulas), suffixes, call, reducing=False)


def _emit_rows(kernel: Kernel, name: str, formulas: Sequence[str], iotas: Set[str], sizes: Set[str]) -> CudaKernel:
    arguments = rows_arguments(kernel, name, iotas, sizes)
    emitter = RowsEmitter(kernel, arguments)
    functions, single = emitter.functions(formulas), emitter.schedule.is_single
    return _assembled(arguments, functions, emitter.suffixes, emitter.launch, reducing=single)


def _assembled(
    arguments: Arguments, functions: str, suffixes: Sequence[str], call: str, *, reducing: bool
) -> CudaKernel:
    if arguments.bytes > _MOST_BYTES_OF_ARGUMENTS:
        fact = f"a kernel of {len(arguments.accesses)} operands takes {arguments.bytes} bytes of arguments"
        raise NoKernel(
            f"{fact}, and a GPU takes {_MOST_BYTES_OF_ARGUMENTS}", hint="split the function in two operators"
        )
    launch = f"  if (!cuda::{call}({arguments.name}_kernels, arguments, places)) return false;"
    return CudaKernel(
        name=arguments.name,
        type=arguments.type,
        arguments=arguments.declaration(reducing),
        functions=functions,
        versions=tuple(f"{arguments.name}{suffix}" for suffix in suffixes),
        launch=("{", *arguments.initializer(), launch, "}"),
    )
