"""Batch norm as folds, element-wise operations and an update of the running statistics, which torch's schema hides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

Tensor = torch.Tensor
_HALF = (torch.bfloat16, torch.float16)


def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean)/√(variance + eps)·weight + bias per channel, with the mean and 1/√(variance + eps) of the batch.

    The running variance goes towards the unbiased one, as in Ioffe and Szegedy, "Batch Normalization", algorithm 2.
    """
    wide = x.to(torch.float32) if x.dtype in _HALF else x
    channel = [1, x.shape[1]] + [1] * (x.dim() - 2)
    if not training:
        assert running_mean is not None
        assert running_var is not None
        scale = torch.rsqrt(running_var.to(wide.dtype) + eps).reshape(channel)
        result = (wide - running_mean.to(wide.dtype).reshape(channel)) * scale
        return _affine(result, weight, bias, channel).to(x.dtype), wide.new_zeros((0,)), wide.new_zeros((0,))
    rest = [dimension for dimension in range(x.dim()) if dimension != 1]
    count: Any = x.numel() // x.shape[1]
    mean = torch.sum(wide, rest, True) / count
    centred = wide - mean
    squares = torch.sum(centred * centred, rest, True)
    scale = torch.rsqrt(squares / count + eps)
    if running_mean is not None:
        _move(running_mean, mean, momentum)
    if running_var is not None:
        _move(running_var, squares / (count - 1 if count > 1 else 0), momentum)
    result = _affine(centred * scale, weight, bias, channel)
    return result.to(x.dtype), mean.reshape(x.shape[1]), scale.reshape(x.shape[1])


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, channel: list[Any]) -> Tensor:
    if weight is not None:
        x = x * weight.reshape(channel)
    return x if bias is None else x + bias.reshape(channel)


def _move(running: Tensor, seen: Tensor, momentum: float) -> None:
    """Change a running statistic: the recorder refuses it where the caller would not see the change."""
    running.copy_(running * (1 - momentum) + seen.reshape(running.shape) * momentum)


BATCH_NORM: Mapping[OpOverload, Callable[..., Any]] = {torch.ops.aten.native_batch_norm.default: _batch_norm}
