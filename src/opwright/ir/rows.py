"""Which values of a kernel differ from point to point of a row."""

from __future__ import annotations

from collections.abc import Collection

from opwright.ir.expressions.expression import Expression, Load, Local, children
from opwright.ir.expressions.integer import Integer, symbols_of
from opwright.ir.program import Axis, Kernel, Reduce


def outer_axes(kernel: Kernel) -> tuple[Axis, ...]:
    """The axes that lead from row to row."""
    return kernel.axes[: len(kernel.axes) - kernel.row_axes]


def row_axes(kernel: Kernel) -> tuple[Axis, ...]:
    """The axes of a row."""
    return kernel.axes[len(kernel.axes) - kernel.row_axes :]


def varying_locals(kernel: Kernel) -> set[str]:
    """The locals and gathered indices that differ from point to point of a row; a reduction never does."""
    axes = {axis.name for axis in row_axes(kernel)}
    varying: set[str] = set()
    for let in kernel.lets:
        if not isinstance(let, Reduce) and varies(let.value, axes, varying):
            varying.add(let.name)
    return varying


def varies(value: Expression, axes: Collection[str], varying: Collection[str]) -> bool:
    """Whether a value depends on some of these axes, or on a local or a gathered index that does."""
    match value:
        case Load(indices=indices):
            return indexed_by(indices, axes) or indexed_by(indices, varying)
        case Local(name):
            return name in varying
        case _:
            return any(varies(child, axes, varying) for child in children(value))


def indexed_by(indices: Collection[Integer], axes: Collection[str]) -> bool:
    """Whether some of these axes take part in the indices."""
    return any(not symbols_of(index).isdisjoint(axes) for index in indices)
