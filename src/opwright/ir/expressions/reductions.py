"""The reductions: one row each, with the meaning that the interpreter gives them.

A reduction keeps the dtype of its values. `maximum` and `minimum` propagate NaN, as in torch. Sums and products of real
numbers are rounded once, at the end: backends accumulate in double precision or better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


@dataclass(frozen=True, slots=True)
class Reducer:
    """A row of the table.

    Attributes:
        meaning: `(values, axis) -> the values reduced along these axes`, which stay with one element.
        combine: The scalar function of two values (ir/expressions/functions.py) that the reduction repeats.
    """

    meaning: Callable[[Array, tuple[int, ...]], Array]
    combine: str


def _wide(function: Callable[..., Array]) -> Callable[[Array, tuple[int, ...]], Array]:
    def apply(values: Array, axis: tuple[int, ...]) -> Array:
        wide = np.longdouble if values.dtype.kind == "f" else values.dtype
        return function(values, axis=axis, keepdims=True, dtype=wide).astype(values.dtype)

    return apply


def _plain(function: Callable[..., Array]) -> Callable[[Array, tuple[int, ...]], Array]:
    return lambda values, axis: function(values, axis=axis, keepdims=True)


REDUCERS: dict[str, Reducer] = {
    "sum": Reducer(_wide(np.sum), "add"),
    "product": Reducer(_wide(np.prod), "multiply"),
    "maximum": Reducer(_plain(np.max), "maximum"),
    "minimum": Reducer(_plain(np.min), "minimum"),
    "any": Reducer(_plain(np.any), "logical_or"),
    "all": Reducer(_plain(np.all), "logical_and"),
}
