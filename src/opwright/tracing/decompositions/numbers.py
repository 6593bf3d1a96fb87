"""Operations that take a number, which torch's stable C interface does not pass, as operations that take tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.tracing.torch_hooks.fake_mode import core_decompositions

aten = torch.ops.aten


def _scatter_value_reduce(x: torch.Tensor, dim: int, index: torch.Tensor, value: Any, *, reduce: str) -> Any:
    return aten.scatter.reduce(x, dim, index, _filled(index, value, x), reduce=reduce)


def _filled(like: torch.Tensor, value: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.full(like.shape, value, dtype=x.dtype)


def _index_fill(x: torch.Tensor, dim: int, index: torch.Tensor, value: Any) -> Any:
    return aten.index_fill.int_Tensor(x, dim, index, torch.full((), value, dtype=x.dtype))


def _masked_fill(x: torch.Tensor, mask: torch.Tensor, value: torch.Tensor) -> Any:
    _check_held(value, x.dtype)
    return core_decompositions()[aten.masked_fill.Tensor](x, mask, value)


def _index_fill_tensor(x: torch.Tensor, dim: int, index: torch.Tensor, value: torch.Tensor) -> Any:
    if value.dtype is x.dtype:
        return NotImplemented
    _check_held(value, x.dtype if x.dtype is not torch.bool else torch.int64)  # as which torch reads the number
    return aten.index_fill.int_Tensor(x, dim, index, value.to(x.dtype))


def _check_held(value: torch.Tensor, dtype: torch.dtype) -> None:
    """Let kernels check that a dtype holds the value of a tensor, as torch does where it fills memory with one.

    Negative integers wrap around in unsigned ones (c10/util/TypeCast.h).
    """
    if dtype.is_complex or value.dtype.is_complex or torch.bool in (value.dtype, dtype) or value.dtype is dtype:
        return
    low, high = _range_of(dtype)
    if not (dtype.is_floating_point or dtype.is_signed or value.dtype.is_floating_point):
        low = -high
    least, greatest = _range_of(value.dtype)
    becomes_whole = value.dtype.is_floating_point and not dtype.is_floating_point  # which infinities and NaN cannot
    if low <= least and greatest <= high and not becomes_whole:
        return
    value = value.to(torch.float64) if value.dtype.is_floating_point else value  # float16 would compare with infinity
    is_held = (value >= low) & (value <= high)
    if value.dtype.is_floating_point and not becomes_whole:
        is_held = is_held | (value.abs() == math.inf) | (value != value)
    aten._assert_async.msg(is_held.reshape(()), f"a value that {dtype} does not hold")


def _range_of(dtype: torch.dtype) -> tuple[Any, Any]:
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return limits.min, limits.max


def _constant_pad(x: torch.Tensor, pad: list[int], value: Any = 0) -> Any:
    """Pad and crop one dimension after another, the last one first, as `pad` lists them."""
    if len(pad) % 2 or len(pad) > 2 * x.dim():
        return NotImplemented
    result = x
    for position in range(len(pad) // 2):
        before, after = pad[2 * position], pad[2 * position + 1]
        result = _pad_dimension(result, x.dim() - 1 - position, before, after, value)
    return result.clone() if result is x else result


def _pad_dimension(x: torch.Tensor, dimension: int, before: int, after: int, value: Any) -> torch.Tensor:
    if before < 0:
        x = x.narrow(dimension, -before, x.shape[dimension] + before)
    if after < 0:
        x = x.narrow(dimension, 0, x.shape[dimension] + after)
    left = [_border(x, dimension, before, value)] if before > 0 else []
    right = [_border(x, dimension, after, value)] if after > 0 else []
    return torch.cat([*left, x, *right], dimension) if left or right else x


def _border(x: torch.Tensor, dimension: int, size: int, value: Any) -> torch.Tensor:
    shape = [size if d == dimension else x.shape[d] for d in range(x.dim())]
    return torch.full(shape, value, dtype=x.dtype)


def _broadcast(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    shape = torch.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return [tensor.expand(shape) for tensor in tensors]


def _tensor_split(x: torch.Tensor, sections: int, dim: int = 0) -> list[torch.Tensor]:
    size = x.shape[dim]
    sizes = [size // sections + (1 if position < size % sections else 0) for position in range(sections)]
    return list(torch.split_with_sizes(x, sizes, dim))


def _isin(x: torch.Tensor, values: torch.Tensor, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Binary search of every element in the sorted values; NaN is never found."""
    if x.dtype is not values.dtype or x.dtype is torch.bool:
        return NotImplemented
    ordered = torch.sort(values.reshape(-1)).values
    nearest = torch.clamp(torch.searchsorted(ordered, x), max=ordered.shape[0] - 1)
    found = torch.index_select(ordered, 0, nearest.reshape(-1)).reshape(x.shape) == x
    return ~found if invert else found


NUMBER_DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    aten.scatter.value: lambda x, dim, index, value: aten.scatter.src(x, dim, index, _filled(index, value, x)),
    aten.scatter.value_reduce: _scatter_value_reduce,
    aten.index_fill.int_Scalar: _index_fill,
    aten.index_fill.int_Tensor: _index_fill_tensor,
    aten.masked_fill.Tensor: _masked_fill,
    aten.constant_pad_nd.default: _constant_pad,
    aten.dist.default: lambda x, y, p=2: torch.linalg.vector_norm(x - y, p),
    aten.ldexp.Tensor: lambda x, exponent: x * torch.pow(2.0, exponent),
    aten.type_as.default: lambda x, other: x.to(other.dtype),
    aten._efficientzerotensor.default: lambda size, **options: torch.zeros(size, dtype=options.get("dtype")),
    aten.broadcast_tensors.default: _broadcast,
    aten.tensor_split.sections: _tensor_split,
    aten.isin.Tensor_Tensor: _isin,
    aten.unbind_copy.int: lambda x, dim=0: [x.select(dim, index).clone() for index in range(x.shape[dim])],
}
