"""The versions of a kernel that the launcher chooses from: how wide indices are, how many neighbours a thread takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opwright.codegen.cuda.arguments import Arguments


@dataclass(frozen=True, slots=True)
class Version:
    """One of them.

    Attributes:
        suffix: The suffix of its name.
        threads: The most threads of a block: the fewer, the more registers for each.
        index: The type of indices.
        width: How many neighbours a thread takes together.
        held: How many packs of a row a thread keeps in registers; None where there are no rows, 0 if it reads again.
    """

    suffix: str
    threads: int
    index: str
    width: int
    held: int | None = None

    @property
    def parameters(self) -> str:
        """The template arguments."""
        return ", ".join([self.index, str(self.width), *([] if self.held is None else [str(self.held)])])


def entry_points(arguments: Arguments, versions: Sequence[Version], call: str) -> str:
    """The kernels; `call` is what each calls, with a place for the parameters of its version."""
    return "\n".join(
        f'extern "C" __global__ void __launch_bounds__({version.threads})\n'
        f"{arguments.name}{version.suffix}(const __grid_constant__ {arguments.type} given) {{\n"
        f"  {call.format(version.parameters)}(given);\n"
        "}"
        for version in versions
    )


def kernel_table(name: str, kernels: Sequence[str], found: str = "kernel_images") -> str:
    """The table in which the launcher finds them, in the order of include/opwright/cuda/launches.h.

    Args:
        name: The name of the table.
        kernels: The name of each.
        found: How a launcher refers to one; it may have a place for its name.
    """
    rows = [f'    {{{found.format(kernel)}, "{kernel}"}},' for kernel in kernels]
    return "\n".join([f"static cuda::Kernel {name}_kernels[] = {{", *rows, "};"])
