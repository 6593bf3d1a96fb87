"""argmax and the like: one reduction gives the value, a second one the smallest position with that value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.tracing.decompositions.dimensions import dimensions_of

aten = torch.ops.aten
Tensor = torch.Tensor


def _has_order(x: Tensor) -> bool:
    return x.dtype is not torch.bool and not x.is_complex()


def _position(x: Tensor, value: Tensor, dim: int) -> Tensor:
    """The smallest position along `dim` that equals `value`, or is NaN if `value` is; `dim` is kept."""
    size = x.shape[dim]
    positions = torch.arange(size).reshape([size if d == dim else 1 for d in range(x.dim())])
    found = x == value
    if x.is_floating_point():
        found = found | torch.isnan(x)
    return torch.amin(torch.where(found, positions, size), [dim], True)


def _value_and_position(extreme: Callable[..., Tensor]) -> Callable[..., Any]:
    def rule(x: Tensor, dim: int, keepdim: bool = False) -> Any:
        if not _has_order(x):
            return NotImplemented
        dimensions = dimensions_of(x, dim)
        if not dimensions:
            return x.clone(), torch.zeros((), dtype=torch.int64)
        (dim,) = dimensions
        value = extreme(x, [dim], True)
        position = _position(x, value, dim)
        return (value, position) if keepdim else (value.squeeze(dim), position.squeeze(dim))

    return rule


def _position_alone(extreme: Callable[..., Tensor]) -> Callable[..., Any]:
    def rule(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if not _has_order(x):
            return NotImplemented
        dimensions = dimensions_of(x, dim)
        if dim is None or not dimensions:
            position = rule(x.reshape(-1), 0)
            return position.reshape([1] * x.dim()) if keepdim else position
        (dim,) = dimensions
        position = _position(x, extreme(x, [dim], True), dim)
        return position if keepdim else position.squeeze(dim)

    return rule


POSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    aten.max.dim: _value_and_position(torch.amax),
    aten.min.dim: _value_and_position(torch.amin),
    aten.argmax.default: _position_alone(torch.amax),
    aten.argmin.default: _position_alone(torch.amin),
}
