"""What library operations mean, for the interpreter: name and overload → a NumPy function of the operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
CallMeaning = Callable[..., Array | tuple[Array, ...]]


def _sum(x: Array, dtype: str | None = None) -> Array:
    return _sum_along(x, None, False, dtype)


def _sum_along(x: Array, dimensions: Sequence[int] | None, keep: bool = False, dtype: str | None = None) -> Array:
    """Sum along dimensions, all of them if none are given; integers and truth values are summed as int64."""
    accumulated = np.dtype(dtype) if dtype else x.dtype if x.dtype.kind == "f" else np.dtype(np.int64)
    axis = tuple(dimensions) if dimensions else None
    return np.asarray(x.sum(axis=axis, keepdims=keep, dtype=accumulated))


def _linear(x: Array, weight: Array, bias: Array) -> Array:
    return np.asarray(x @ weight.T + bias)


CALL_MEANINGS: dict[str, CallMeaning] = {
    "aten::mm": np.matmul,
    "aten::bmm": np.matmul,
    "aten::linear": _linear,
    "aten::t": np.transpose,
    "aten::permute": np.transpose,
    "aten::transpose.int": np.swapaxes,
    "aten::reshape": np.reshape,
    "aten::view": np.reshape,
    "aten::sum": _sum,
    "aten::sum.dim_IntList": _sum_along,
}
