"""Decompositions of softmax, norms and moments into folds and element-wise operations, which kernels fuse again.

Half types are computed in float32, as torch's own kernels do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.tracing.decompositions.dimensions import dimensions_of

aten = torch.ops.aten
Tensor = torch.Tensor
_HALF = (torch.bfloat16, torch.float16)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.float32) if x.dtype in _HALF else x


def _softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return e^(x - max) / Σ e^(x - max), with one division for a row: a rounding more than eager's, of ½ ulp."""
    wide = _wide(x)
    power = torch.exp(wide - torch.amax(wide, [dim], True))
    result = power * torch.reciprocal(torch.sum(power, [dim], True))
    return result if half_to_float else result.to(x.dtype)


def _softmax_backward(gradient: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    """Return y·(g - Σ g·y), as torch's own kernel rounds it."""
    wide, output = _wide(gradient), _wide(output)
    return (output * (wide - torch.sum(wide * output, [dim], True))).to(input_dtype)


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return x - max - log Σ e^(x - max)."""
    wide = _wide(x)
    shifted = wide - torch.amax(wide, [dim], True)
    result = shifted - torch.log(torch.sum(torch.exp(shifted), [dim], True))
    return result if half_to_float else result.to(x.dtype)


def _mean(x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if not (dtype or x.dtype).is_floating_point:
        return NotImplemented
    wide = _wide(x if dtype is None else x.to(dtype))
    dimensions = dimensions_of(x, dim)
    mean = torch.sum(wide, dimensions, keepdim) / _count(x, dimensions)
    return mean.to(dtype or x.dtype)


def _var_mean(x: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    """Two passes: the mean first, then the mean square of what is left (the stable form)."""
    correction = 1 if correction is None else correction
    if not x.dtype.is_floating_point:
        return NotImplemented
    wide, dimensions = _wide(x), dimensions_of(x, dim)
    count = _count(x, dimensions)
    mean = torch.sum(wide, dimensions, True) / count
    centred = wide - mean
    freedom = count - correction
    variance = torch.sum(centred * centred, dimensions, keepdim) / (freedom if freedom > 0 else 0)
    mean = mean if keepdim else _drop(mean, dimensions)
    return variance.to(x.dtype), mean.to(x.dtype)


def _var(x: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    found = _var_mean(x, dim, correction=correction, keepdim=keepdim)
    return found if found is NotImplemented else found[0]


def _std(x: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    found = _var_mean(_wide(x), dim, correction=correction, keepdim=keepdim)
    return found if found is NotImplemented else torch.sqrt(found[0]).to(x.dtype)


def _std_mean(x: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    found = _var_mean(_wide(x), dim, correction=correction, keepdim=keepdim)
    return found if found is NotImplemented else (torch.sqrt(found[0]).to(x.dtype), found[1].to(x.dtype))


def _vector_norm(
    x: Tensor, ord: Any = 2, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """(Σ |x|^p)^(1/p) and its limits."""
    if not x.dtype.is_floating_point or not isinstance(ord, (int, float)):
        return NotImplemented
    result = dtype or x.dtype
    size, dimensions = torch.abs(_wide(x.to(result))), dimensions_of(x, dim)
    if ord == math.inf:
        norm = torch.amax(size, dimensions, keepdim)
    elif ord == -math.inf:
        norm = torch.amin(size, dimensions, keepdim)
    elif ord == 0:
        norm = torch.sum((size != 0).to(size.dtype), dimensions, keepdim)
    elif ord == 1:
        norm = torch.sum(size, dimensions, keepdim)
    elif ord == 2:
        norm = torch.sqrt(torch.sum(size * size, dimensions, keepdim))
    else:
        norm = torch.pow(torch.sum(torch.pow(size, ord), dimensions, keepdim), 1.0 / ord)
    return norm.to(result)


def _layer_norm(
    x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean)/√(variance + eps)·weight + bias, with the mean and 1/√(variance + eps)."""
    dimensions = list(range(x.dim() - len(normalized_shape), x.dim()))
    wide, count = _wide(x), _count(x, dimensions)
    mean = torch.sum(wide, dimensions, True) / count
    centred = wide - mean
    scale = torch.rsqrt(torch.sum(centred * centred, dimensions, True) / count + eps)
    result = centred * scale
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result.to(x.dtype), mean, scale


def _group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    n: int,
    channels: int,
    positions: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm of each group of channels; weight and bias are per channel."""
    grouped = _wide(x).reshape(n, groups, channels // groups, positions)
    count = (channels // groups) * positions
    mean = torch.sum(grouped, [2, 3], True) / count
    centred = grouped - mean
    scale = torch.rsqrt(torch.sum(centred * centred, [2, 3], True) / count + eps)
    result = centred * scale
    if weight is not None:
        result = result * weight.reshape(groups, channels // groups, 1)
    if bias is not None:
        result = result + bias.reshape(groups, channels // groups, 1)
    return result.reshape(x.shape).to(x.dtype), mean.reshape(n, groups), scale.reshape(n, groups)


def _count(x: Tensor, dimensions: Sequence[int]) -> Any:
    return math.prod(x.shape[dimension] for dimension in dimensions)


def _drop(x: Tensor, dimensions: Sequence[int]) -> Tensor:
    for dimension in reversed(dimensions):
        x = x.squeeze(dimension)
    return x


def _whole(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, **options: rule(x, **options)


NORMALIZATIONS: Mapping[OpOverload, Callable[..., Any]] = {
    aten._softmax.default: _softmax,
    aten._softmax_backward_data.default: _softmax_backward,
    aten._log_softmax.default: _log_softmax,
    aten.mean.default: _whole(_mean),
    aten.mean.dim: _mean,
    aten.var.correction: _var,
    aten.var_mean.correction: _var_mean,
    aten.std.correction: _std,
    aten.std_mean.correction: _std_mean,
    aten.linalg_vector_norm.default: _vector_norm,
    aten.native_layer_norm.default: _layer_norm,
    aten.native_group_norm.default: _group_norm,
}
