"""The factor of the gradients of a step: of clipping, as in `clip_grad_norm_`, and of the scale of a GradScaler.

It is computed where the gradients are; the processor waits for it only where it needs the number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from opwright.optim.definition import FACTOR
from opwright.tracing.torch_hooks.spread import has_spread, spec_of

Numbers = Mapping[str, "float | torch.Tensor"]
"""Hyper-parameters and the step by name; beside them the factor, which may be a tensor."""

_SMALL = 1e-6  # which clip_grad_norm_ adds to the norm
_WITH_DOUBLES = ("cpu", "cuda")


class Factor:
    """A number for all gradients of a step.

    Args:
        value: A tensor of float64 without dimensions.
    """

    def __init__(self, value: torch.Tensor) -> None:
        self._value = value
        self._there: dict[torch.device, torch.Tensor] = {}

    @functools.cached_property
    def number(self) -> float:
        """The number; the processor waits for it."""
        return float(self._value)

    def on(self, device: torch.device) -> torch.Tensor:
        """The number on a device, where it arrives in the order of the current stream."""
        if device not in self._there:
            self._there[device] = sent(self._value, device)
        return self._there[device]


def with_factor(numbers: Sequence[Numbers], factor: Factor | None, device: torch.device | None) -> Sequence[Numbers]:
    """The numbers of each group, with the factor of a step among them.

    Args:
        numbers: By name.
        factor: It; None if there is none.
        device: Where it is read; None for the processor, which waits for it.
    """
    if factor is None:
        return numbers
    value = factor.number if device is None else factor.on(device)
    return [{**each, FACTOR: value} for each in numbers]


def factor_of(
    gradients: Callable[[], Sequence[torch.Tensor]], most: float | None, scale: torch.Tensor | None
) -> Factor | None:
    """The factor of a step; None if there is none.

    Args:
        gradients: Of all groups; asked for if they are clipped.
        most: The largest norm; None for any.
        scale: By what a GradScaler has multiplied them; None for nothing.
    """
    unscaled = None if scale is None else _with_doubles(scale.detach().reshape(())).double().reciprocal()
    if most is None:
        return None if unscaled is None else Factor(unscaled)
    norm = _with_doubles(_norm([grad.coalesce() if grad.is_sparse else grad for grad in gradients()]))
    if unscaled is not None:
        unscaled = sent(unscaled, norm.device)
        norm = scaled(norm, unscaled)
    coefficient = torch.clamp(most / (norm + _SMALL), max=1.0).double()
    return Factor(coefficient if unscaled is None else coefficient * unscaled)


def sent(number: torch.Tensor, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A number on another device, in the order of the streams; the processor waits for its own alone."""
    return number.to(device, dtype or number.dtype, non_blocking=device.type != "cpu")


def _with_doubles(number: torch.Tensor) -> torch.Tensor:
    """A number where it may become a float64: on the processor, if its device has none, as those of Apple."""
    return number if number.device.type in _WITH_DOUBLES else number.cpu()


def scaled(value: torch.Tensor, factor: Any) -> torch.Tensor:
    """A tensor times a number, or times one in a tensor of float64, rounded to the dtype of the tensor once.

    PyTorch rounds a factor that is a tensor to a half type before it multiplies, and kernels keep products in float32.
    """
    wide = torch.float32 if value.dtype.itemsize < torch.float32.itemsize else value.dtype
    return (value.to(wide) * (factor.to(wide) if isinstance(factor, torch.Tensor) else factor)).to(value.dtype)


def _norm(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    """The norm of all gradients; of DTensors as a whole, whatever their placements."""
    alike: dict[Any, list[torch.Tensor]] = {}
    for grad in gradients:
        key = (spec_of(grad).mesh, spec_of(grad).placements) if has_spread([grad]) else None
        alike.setdefault(key, []).append(grad)
    norms = [torch.nn.utils.get_total_norm(each) for each in alike.values()]
    whole = [norm.full_tensor() if has_spread([norm]) else norm for norm in norms]  # type: ignore[attr-defined]
    return whole[0] if len(whole) == 1 else torch.nn.utils.get_total_norm(whole)
