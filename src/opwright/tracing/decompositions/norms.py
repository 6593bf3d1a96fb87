"""Layer, group and batch norm as reductions and element-wise operations, which kernels fuse again.

Half types are computed in float32, as torch's own kernels do. `composed.py` differentiates the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten
Tensor = torch.Tensor
Dimensions = list[int] | tuple[int, ...]
Normed = tuple[Tensor, Tensor, Tensor]
_HALF = (torch.bfloat16, torch.float16)


def wide(x: Tensor) -> Tensor:
    """What to compute with."""
    return x.to(torch.float32) if x.dtype in _HALF else x


def are_taken_together(x: Tensor, *parameters: Tensor | None) -> bool:
    """Whether torch's norms take parameters and statistics of these dtypes: all that of `x`, or all float32 for a half.

    `at::native::check_mixed_data_type` and the readers of the kernels, which ask for one dtype (PyTorch 2.13).
    """
    dtypes = {parameter.dtype for parameter in parameters if parameter is not None}
    return dtypes <= {x.dtype} or (x.dtype in _HALF and dtypes == {torch.float32})


def count(x: Tensor, dimensions: Dimensions) -> Any:
    """How many elements go into one result."""
    return math.prod(x.shape[dimension] for dimension in dimensions)


def moments(x: Tensor, dimensions: Dimensions, keepdim: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """The mean, what is left without it, and the sum of its squares: two passes, the stable form."""
    mean = torch.sum(x, dimensions, True) / count(x, dimensions)
    centred = x - mean
    return mean, centred, torch.sum(centred * centred, dimensions, keepdim)


def standardized(x: Tensor, dimensions: Dimensions, eps: float) -> Normed:
    """(x - mean)/√(variance + eps), with the mean and 1/√(variance + eps).

    Where the variance overflows, all are NaN, as torch's are for most sizes: with 1/√∞ = 0, numbers that look like
    results would be returned.
    """
    mean, centred, squares = moments(x, dimensions)
    variance = squares / count(x, dimensions)
    overflown, root = variance == math.inf, torch.rsqrt(variance + eps)
    scale = torch.where(overflown, math.nan, root)
    return centred * scale, mean, scale


def affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[Any] | None = None) -> Tensor:
    """x·weight + bias, which are seen in a shape."""
    if weight is not None:
        x = x * (weight if shape is None else weight.reshape(shape))
    if bias is not None:
        x = x + (bias if shape is None else bias.reshape(shape))
    return x


def move(running: Tensor, seen: Tensor, momentum: float) -> None:
    """Change a running statistic: the recorder refuses it where the caller would not see the change."""
    running.copy_(running * (1 - momentum) + seen.reshape(running.shape) * momentum)


def layer_norm(
    x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Normed:
    """Of the last dimensions, with the mean and 1/√(variance + eps)."""
    result, mean, scale = standardized(wide(x), list(range(x.dim() - len(normalized_shape), x.dim())), eps)
    return affine(result, weight, bias).to(x.dtype), mean, scale


def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    n: int,
    channels: int,
    positions: int,
    groups: int,
    eps: float,
) -> Normed:
    """Layer norm of each group of channels; weight and bias are per channel."""
    result, mean, scale = standardized(wide(x).reshape(n, groups, channels // groups, positions), [2, 3], eps)
    result = affine(result, weight, bias, (groups, channels // groups, 1))
    return result.reshape(x.shape).to(x.dtype), mean.reshape(n, groups), scale.reshape(n, groups)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Normed:
    """Per channel, with the mean and 1/√(variance + eps) of the batch.

    The running variance goes towards the unbiased one, as in Ioffe and Szegedy, "Batch Normalization", algorithm 2.
    """
    values, channel = wide(x), [1, x.shape[1]] + [1] * (x.dim() - 2)
    if not training:
        assert running_mean is not None
        assert running_var is not None
        scale = torch.rsqrt(running_var.to(values.dtype) + eps).reshape(channel)
        result = (values - running_mean.to(values.dtype).reshape(channel)) * scale
        return affine(result, weight, bias, channel).to(x.dtype), values.new_zeros((0,)), values.new_zeros((0,))
    rest = [dimension for dimension in range(x.dim()) if dimension != 1]
    size: Any = x.numel() // x.shape[1]
    mean, centred, squares = moments(values, rest)
    variance = squares / size
    scale = torch.rsqrt(variance + eps)
    if running_mean is not None:
        move(running_mean, mean, momentum)
    if running_var is not None:
        move(running_var, squares / (size - 1 if size > 1 else 0), momentum)
    result = affine(centred * scale, weight, bias, channel)
    return result.to(x.dtype), mean.reshape(x.shape[1]), scale.reshape(x.shape[1])


NORMS: Mapping[OpOverload, Callable[..., Any]] = {
    aten.native_layer_norm.default: layer_norm,
    aten.native_group_norm.default: group_norm,
    aten.native_batch_norm.default: batch_norm,
}
