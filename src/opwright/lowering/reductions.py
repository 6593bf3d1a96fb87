"""Reductions: one row for each core ATen operation that folds a tensor along some of its dimensions.

A rule takes the element as a scalar expression and says what is folded, how, and what becomes of the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Load, Local, cast
from opwright.ir.expressions.integer import ONE, ZERO, symbol
from opwright.ir.program import Axis, Buffer, Fold, Kernel, Store

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Reduction:
    """A row.

    Attributes:
        fold: A row of ir/expressions/folds.py.
        truth: Whether elements count as true or false.
    """

    fold: str
    truth: bool = False

    def of(self, dtype: DType) -> Reduction:
        """The fold of elements of a dtype: the largest truth value is whether any is true."""
        return Reduction(_OF_TRUTHS[self.fold], truth=True) if dtype is DType.BOOL and self.fold in _OF_TRUTHS else self

    def element(self, value: Expression, result: DType) -> Expression:
        """What is folded, for an element of the tensor and the dtype of the result."""
        return cast(cast(value, value.dtype.computed), DType.BOOL if self.truth else result)


_OF_TRUTHS = {"maximum": "any", "minimum": "all"}
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


def reduced_dimensions(row: Reduction, arguments: Mapping[str, Any], rank: int) -> tuple[int, ...]:
    """The dimensions that an operation folds; none given means all, none in the list too, but for truth values."""
    given = arguments.get("dim")
    dimensions: Sequence[int] = [given] if isinstance(given, int) else range(rank) if given is None else given
    if not dimensions and not row.truth:
        dimensions = range(rank)
    return tuple(sorted({dimension % rank for dimension in dimensions})) if rank else ()


def fold_kernel(source: Buffer, target: Buffer, row: Reduction, reduced: Sequence[int], *, keep: bool) -> Kernel:
    """The kernel that folds a buffer along some of its dimensions.

    Where the last dimension is folded, rows are what is folded: they lie together in memory. Where it is not, the
    kernel runs over the elements as they lie, and folds into the target.

    Args:
        source: What is folded.
        target: What it folds to.
        row: How.
        reduced: The dimensions that are folded, in order.
        keep: Whether they stay, with one element.
    """
    row = row.of(source.dtype)
    axes = [Axis(f"i{dimension}", size) for dimension, size in enumerate(source.shape)]
    value = row.element(Load(source.name, tuple(symbol(axis.name) for axis in axes), source.dtype), target.dtype)
    at = tuple(
        ZERO if dimension in reduced else symbol(axis.name)
        for dimension, axis in enumerate(axes)
        if keep or dimension not in reduced
    )
    folded = [axis for dimension, axis in enumerate(axes) if dimension in reduced and axis.extent != ONE]
    kept = [axis for axis in axes if axis not in folded]
    wide = [axis for axis in axes if axis.extent != ONE]
    if not folded:
        return _copy(source, target, row, [d for d in range(len(axes)) if keep or d not in reduced])
    if wide[-1] not in folded:
        return Kernel(target.name, (target,), tuple(axes), (), (Store(target.name, at, value, row.fold),))
    fold = Fold(f"{target.name}_{row.fold}", row.fold, value)
    store = Store(target.name, at, Local(fold.name, value.dtype))
    return Kernel(target.name, (target,), (*kept, *folded), (fold,), (store,), row_axes=len(folded))


def _copy(source: Buffer, target: Buffer, row: Reduction, left: Sequence[int]) -> Kernel:
    """Nothing is folded: every element is its own sum. `left` are the dimensions of the target."""
    axes = tuple(Axis(f"i{position}", size) for position, size in enumerate(target.shape))
    at = dict(zip(left, axes, strict=True))
    indices = tuple(ZERO if size == ONE else symbol(at[d].name) for d, size in enumerate(source.shape))
    value = row.element(Load(source.name, indices, source.dtype), target.dtype)
    whole = tuple(symbol(axis.name) for axis in axes)
    return Kernel(target.name, (target,), axes, (), (Store(target.name, whole, value),))
