"""Reductions: one row for each core ATen operation that reduces a tensor along some of its dimensions.

A rule takes the element as a scalar expression; it says what is reduced, how, and what the result is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Literal, Load, Local, apply, cast
from opwright.ir.expressions.integer import ONE, ZERO, symbol
from opwright.ir.program import Axis, Buffer, Kernel, Reduce, Store
from opwright.tracing.interface.orders import Order

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Reduction:
    """A row.

    Attributes:
        reducer: A row of ir/expressions/reductions.py.
        truth: Whether elements count as true or false.
    """

    reducer: str
    truth: bool = False

    def of(self, dtype: DType, result: DType) -> Reduction:
        """The reduction of elements of a dtype: the largest truth value is whether any is true.

        That of a byte is a byte, 0 or 1.
        """
        if self.truth and result is not DType.BOOL:
            return Reduction(_OF_NUMBERS[self.reducer], truth=True)
        is_of_truths = dtype is DType.BOOL and self.reducer in _OF_TRUTHS
        return Reduction(_OF_TRUTHS[self.reducer], truth=True) if is_of_truths else self

    def element(self, value: Expression, result: DType) -> Expression:
        """What is reduced, for an element of the tensor and the dtype of the result."""
        computed = cast(value, value.dtype.computed)
        return cast(cast(computed, DType.BOOL), result) if self.truth else cast(computed, result)


_OF_TRUTHS = {"maximum": "any", "minimum": "all"}
_OF_NUMBERS = {"any": "maximum", "all": "product"}  # of 0 and 1; that of none is 0 and 1
REDUCTIONS: Mapping[Any, Reduction] = {
    aten.sum: Reduction("sum"),
    aten.prod: Reduction("product"),
    aten.amax: Reduction("maximum"),
    aten.amin: Reduction("minimum"),
    aten.max: Reduction("maximum"),
    aten.min: Reduction("minimum"),
    aten.any: Reduction("any", truth=True),
    aten.all: Reduction("all", truth=True),
}
_NAMES = frozenset(operation.__name__ for operation in REDUCTIONS)


def reduced_dimensions(row: Reduction, arguments: Mapping[str, Any], rank: int) -> tuple[int, ...]:
    """The dimensions that an operation reduces: all without `dim`, and for an empty list except by `any` and `all`."""
    given = arguments.get("dim")
    dimensions: Sequence[int] = [given] if isinstance(given, int) else range(rank) if given is None else given
    if not dimensions and not row.truth:
        dimensions = range(rank)
    return tuple(sorted({dimension % rank for dimension in dimensions})) if rank else ()


def reduce_kernel(
    source: Buffer, target: Buffer, row: Reduction, reduced: Sequence[int], *, keep: bool, order: Order = ()
) -> Kernel:
    """The kernel that reduces a buffer along some of its dimensions.

    If the innermost dimension is reduced, the kernel reduces rows, which are contiguous. If not, it runs over the
    elements in memory order, with a reducing store.

    Args:
        source: The buffer to reduce.
        target: The result.
        row: The reduction.
        reduced: The dimensions that are reduced, in order.
        keep: Whether they stay, with one element.
        order: In which order its dimensions lie in memory; () as written.
    """
    row = row.of(source.dtype, target.dtype)
    axes = [Axis(f"i{dimension}", size) for dimension, size in enumerate(source.shape)]
    value = row.element(Load(source.name, tuple(symbol(axis.name) for axis in axes), source.dtype), target.dtype)
    at = tuple(
        ZERO if dimension in reduced else symbol(axis.name)
        for dimension, axis in enumerate(axes)
        if keep or dimension not in reduced
    )
    in_memory = [axes[dimension] for dimension in order or range(len(axes))]
    reduced_axes = [axis for axis in in_memory if axes.index(axis) in reduced and axis.extent != ONE]
    kept = [axis for axis in in_memory if axis not in reduced_axes]
    wide = [axis for axis in in_memory if axis.extent != ONE]
    if not reduced_axes:
        return _copy(source, target, row, [d for d in range(len(axes)) if keep or d not in reduced])
    if wide[-1] not in reduced_axes:
        return Kernel(target.name, (target,), tuple(in_memory), (), (Store(target.name, at, value, row.reducer),))
    says_so = target.name.partition("_")[0] in _NAMES
    name = f"row_{target.name}" if says_so else f"{target.name}_{row.reducer}"
    reduction = Reduce(name, row.reducer, value)
    store = Store(target.name, at, Local(reduction.name, value.dtype))
    return Kernel(target.name, (target,), (*kept, *reduced_axes), (reduction,), (store,), row_axes=len(reduced_axes))


def _copy(source: Buffer, target: Buffer, row: Reduction, left: Sequence[int]) -> Kernel:
    """No dimension of more than one element is reduced: copy the elements. `left` are the dimensions of the target.

    A sum begins with zero, as in eager: that of a -0 is 0.
    """
    axes = tuple(Axis(f"i{position}", size) for position, size in enumerate(target.shape))
    at = dict(zip(left, axes, strict=True))
    indices = tuple(ZERO if size == ONE else symbol(at[d].name) for d, size in enumerate(source.shape))
    value = row.element(Load(source.name, indices, source.dtype), target.dtype)
    if row.reducer == "sum" and (target.dtype.is_floating or target.dtype.is_complex):
        value = apply("add", value, Literal(0.0, value.dtype))
    whole = tuple(symbol(axis.name) for axis in axes)
    return Kernel(target.name, (target,), axes, (), (Store(target.name, whole, value),))
