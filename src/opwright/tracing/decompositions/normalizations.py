"""Decompositions of softmax, moments and norms of vectors into reductions and element-wise operations.

Half types are computed in float32, as torch's own kernels do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.tracing.decompositions.dimensions import dimensions_of
from opwright.tracing.decompositions.norms import count, moments, wide

aten = torch.ops.aten
Tensor = torch.Tensor


def _softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return e^(x - max) / Σ e^(x - max), with one division per row: one more rounding (½ ulp) than eager."""
    values = wide(x)
    power = torch.exp(values - torch.amax(values, [dim], True))
    result = power * torch.reciprocal(torch.sum(power, [dim], True))
    return result if half_to_float else result.to(x.dtype)


def _softmax_backward(gradient: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    """Return y·(g - Σ g·y), as torch's own kernel rounds it."""
    values, output = wide(gradient), wide(output)
    return (output * (values - torch.sum(values * output, [dim], True))).to(input_dtype)


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return x - max - log Σ e^(x - max)."""
    values = wide(x)
    shifted = values - torch.amax(values, [dim], True)
    result = shifted - torch.log(torch.sum(torch.exp(shifted), [dim], True))
    return result if half_to_float else result.to(x.dtype)


def _mean(x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if not (dtype or x.dtype).is_floating_point:
        return NotImplemented
    dimensions = dimensions_of(x, dim)
    values = wide(x if dtype is None else x.to(dtype))
    mean = torch.sum(values, dimensions, keepdim) / count(x, dimensions)
    return mean.to(dtype or x.dtype)


def _var_mean(x: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    """Two passes: the mean first, then the mean square of the deviations (the stable form)."""
    correction = 1 if correction is None else correction
    if not x.dtype.is_floating_point:
        return NotImplemented
    dimensions = dimensions_of(x, dim)
    mean, _, squares = moments(wide(x), dimensions, keepdim)
    freedom = count(x, dimensions) - correction
    variance = squares / (freedom if freedom > 0 else 0)
    mean = mean if keepdim else _drop(mean, dimensions)
    return variance.to(x.dtype), mean.to(x.dtype)


def _var(x: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    found = _var_mean(x, dim, correction=correction, keepdim=keepdim)
    return found if found is NotImplemented else found[0]


def _std(x: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    found = _std_mean(x, dim, correction=correction, keepdim=keepdim)
    return found if found is NotImplemented else found[0]


def _std_mean(x: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    """In float64, as torch computes it: the variance of large numbers would overflow where its root does not."""
    if not x.dtype.is_floating_point:
        return NotImplemented
    variance, mean = _var_mean(x.to(torch.float64), dim, correction=correction, keepdim=keepdim)
    return torch.sqrt(variance).to(x.dtype), mean.to(x.dtype)


def _vector_norm(
    x: Tensor, ord: Any = 2, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """(Σ |x|^p)^(1/p) and its limits."""
    if not x.dtype.is_floating_point or not isinstance(ord, (int, float)):
        return NotImplemented
    if ord == 0 and x.requires_grad:  # whose count requires a gradient in torch, although it has none
        return NotImplemented
    result = dtype or x.dtype
    magnitude, dimensions = torch.abs(wide(x.to(result))), dimensions_of(x, dim)
    if ord != 0 and dimensions and all(isinstance(x.shape[d], int) and x.shape[d] == 1 for d in dimensions):
        norm = magnitude if keepdim else _drop(magnitude, sorted(dimensions))  # of one number, which powers would round
    elif ord == math.inf:
        norm = torch.amax(magnitude, dimensions, keepdim)
    elif ord == -math.inf:
        norm = torch.amin(magnitude, dimensions, keepdim)
    elif ord == 0:
        norm = torch.sum((magnitude != 0).to(magnitude.dtype), dimensions, keepdim)
    elif ord == 1:
        norm = torch.sum(magnitude, dimensions, keepdim)
    elif ord == 2:
        norm = torch.sqrt(torch.sum(magnitude * magnitude, dimensions, keepdim))
    else:
        norm = torch.pow(torch.sum(torch.pow(magnitude, ord), dimensions, keepdim), 1.0 / ord)
    return norm.to(result)


def _drop(x: Tensor, dimensions: Sequence[int]) -> Tensor:
    for dimension in reversed(dimensions):
        x = x.squeeze(dimension)
    return x


NORMALIZATIONS: Mapping[OpOverload, Callable[..., Any]] = {
    aten._softmax.default: _softmax,
    aten._softmax_backward_data.default: _softmax_backward,
    aten._log_softmax.default: _log_softmax,
    aten.mean.default: _mean,
    aten.mean.dim: _mean,
    aten.var.correction: _var,
    aten.var_mean.correction: _var_mean,
    aten.std.correction: _std,
    aten.std_mean.correction: _std_mean,
    aten.linalg_vector_norm.default: _vector_norm,
}
