"""Ranges of numbers as arithmetic on an iota."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten
Number = Any  # int | float | SymInt | SymFloat


def _count(size: Any) -> torch.Tensor:
    """0, 1, …, size - 1 in int64."""
    iota: torch.Tensor = torch.ops.prims.iota(
        size, start=0, step=1, dtype=torch.int64, device="cpu", requires_grad=False
    )
    return iota


def _arange(start: Number, end: Number, step: Number = 1, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    """Start + step·k, computed in int64 or float64 as torch does."""
    numbers = (start, end, step)
    integral = all(isinstance(number, (int, torch.SymInt)) for number in numbers)
    if dtype is None:
        dtype = torch.int64 if integral else torch.get_default_dtype()
    if not (integral or all(isinstance(number, (int, float)) for number in numbers)):
        return NotImplemented
    if integral:
        size = -((start - end) // step)
        return _affine(_count(size), start, step).to(dtype)
    return _affine(_count(math.ceil((end - start) / step)).to(torch.float64), start, step).to(dtype)


def _affine(iota: torch.Tensor, start: Number, step: Number) -> torch.Tensor:
    scaled = iota if isinstance(step, int) and step == 1 else iota * step
    return scaled if isinstance(start, int) and start == 0 else scaled + start


def _roll(x: torch.Tensor, shifts: list[Any], dims: list[int] | None = None) -> Any:
    """Swap two slices along each dimension; without dimensions, of the flattened tensor."""
    if not dims:
        return (
            _roll(x.flatten(), shifts, [0]).view(x.shape)
            if len(shifts) == 1 and x.dim() != 1
            else _roll(x, shifts, [0])
        )
    for shift, dim in zip(shifts, dims, strict=True):
        if not (isinstance(shift, int) and abs(shift) < x.shape[dim]):
            return NotImplemented
    for shift, dim in zip(shifts, dims, strict=True):
        if shift:
            x = torch.cat([aten.slice.Tensor(x, dim, -shift), aten.slice.Tensor(x, dim, 0, -shift)], dim)
    return x if any(shifts) else x.clone()


RANGE_DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    aten.arange.default: lambda end, **options: _arange(0, end, **options),
    aten.arange.start: lambda start, end, **options: _arange(start, end, **options),
    aten.arange.start_step: _arange,
    aten.roll.default: _roll,
}
