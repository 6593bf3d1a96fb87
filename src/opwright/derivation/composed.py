"""Functions whose derivatives torch takes wrong beyond some order, composed of functions where it takes them right.

Torch's formulas for a norm read the mean and the deviation that the forward pass has saved, as if they were constant.
So the first derivative is right, and the second one of forward mode and the third one of reverse mode are silently
wrong, in torch up to 2.13; `tests/derivation/test_composed.py` asks whether they still are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

Tensor = torch.Tensor
_HALF = (torch.bfloat16, torch.float16)


class Composed(TorchFunctionMode):
    """Calls the compositions of this module instead of torch's norms while it is on.

    Raises:
        NotImplementedError: When a function is called whose tangents cannot be differentiated, and which has no
            composition, if `forward_mode`.
    """

    def __init__(self, *, forward_mode: bool = False) -> None:
        super().__init__()
        self._forward_mode = forward_mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the composition, if there is one."""
        if self._forward_mode and func in _WITHOUT_TANGENTS:
            raise NotImplementedError(f"the tangents of {func.__name__} cannot be differentiated again")
        return _COMPOSED.get(func, func)(*args, **(kwargs or {}))


def _normalized(x: Tensor, axes: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / √(variance + eps), the mean and the variance, over some axes."""
    mean = x.mean(axes, keepdim=True)
    centred = x - mean
    variance = (centred * centred).mean(axes, keepdim=True)
    return centred * torch.rsqrt(variance + eps), mean, variance


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    shape = tuple(normalized_shape)
    _demand(shape == tuple(input.shape[input.dim() - len(shape) :]), f"normalized_shape {shape} of an input", input)
    _demand_shape(shape, weight, bias)
    normalized, _, _ = _normalized(_wide(input), tuple(range(-len(shape), 0)), eps)
    return _scaled(normalized, weight, bias).to(input.dtype)


def _group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    _demand(input.shape[1] % num_groups == 0, f"{num_groups} groups of channels of an input", input)
    _demand_shape((input.shape[1],), weight, bias)
    groups = _wide(input).reshape(input.shape[0], num_groups, -1)
    normalized = _normalized(groups, (-1,), eps)[0].reshape(input.shape)
    return _scaled(normalized, _along_channels(weight, input), _along_channels(bias, input)).to(input.dtype)


def _batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    x = _wide(input)
    _demand_shape((input.shape[1],), weight, bias, running_mean, running_var)
    if training:
        x = _by_statistics(x, (0, *range(2, x.dim())), running_mean, running_var, momentum, eps)
    else:
        mean, variance = _along_channels(running_mean, x), _along_channels(running_var, x)
        assert mean is not None
        assert variance is not None
        x = (x - mean) * torch.rsqrt(variance + eps)
    return _scaled(x, _along_channels(weight, input), _along_channels(bias, input)).to(input.dtype)


def _instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not use_input_stats:
        return _batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _demand_shape((input.shape[1],), weight, bias, running_mean, running_var)
    x = _by_statistics(_wide(input), tuple(range(2, input.dim())), running_mean, running_var, momentum, eps)
    return _scaled(x, _along_channels(weight, input), _along_channels(bias, input)).to(input.dtype)


def _by_statistics(
    x: Tensor,
    axes: tuple[int, ...],
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> Tensor:
    """Normalize by what the batch itself shows, which running statistics, of unbiased variances, take part of."""
    sizes = [x.shape[axis] for axis in axes]
    if all(isinstance(size, int) and size == 1 for size in sizes):
        raise ValueError(f"a norm wants more than one value of each channel; sizes {tuple(x.shape)} have one")
    normalized, mean, variance = _normalized(x, axes, eps)
    count = math.prod(sizes)
    with torch.no_grad():
        for running, shown in ((running_mean, mean), (running_var, variance * (count / (count - 1)))):
            if running is not None:
                running.mul_(1 - momentum).add_(_by_channel(shown).to(running.dtype), alpha=momentum)
    return normalized


def _demand(condition: bool, what: str, x: Tensor) -> None:
    """What torch's own functions demand.

    Raises:
        RuntimeError: If the condition does not hold.
    """
    if not condition:
        raise RuntimeError(f"a norm was asked for {what} of sizes {tuple(x.shape)}")


def _demand_shape(shape: tuple[int, ...], *parameters: Tensor | None) -> None:
    for parameter in parameters:
        if parameter is not None:
            _demand(tuple(parameter.shape) == shape, f"sizes {shape}, with a parameter", parameter)


def _by_channel(statistic: Tensor) -> Tensor:
    """The mean over instances, one for each channel."""
    return statistic.detach().reshape(statistic.shape[0], statistic.shape[1]).mean(0)


def _along_channels(values: Tensor | None, x: Tensor) -> Tensor | None:
    return None if values is None else values.reshape(-1, *[1] * (x.dim() - 2))


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in _HALF else x


def _torch_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _torch_instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    return _instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


_COMPOSED: Mapping[Callable[..., Any], Callable[..., Tensor]] = {
    functional.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    functional.group_norm: _group_norm,
    torch.group_norm: _group_norm,
    functional.batch_norm: _batch_norm,
    torch.batch_norm: _torch_batch_norm,
    functional.instance_norm: _instance_norm,
    torch.instance_norm: _torch_instance_norm,
}
_WITHOUT_TANGENTS = frozenset({torch.det, torch.linalg.det, torch.Tensor.det})
