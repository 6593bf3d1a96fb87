"""Clipping by the norm of all gradients, as `torch.nn.utils.clip_grad_norm_` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from opwright.tracing.torch_hooks.spread import has_spread, spec_of

_SMALL = 1e-6  # which clip_grad_norm_ adds to the norm


def clip_factor(gradients: Sequence[torch.Tensor], most: float, unscaled: float) -> float:
    """The coefficient of `clip_grad_norm_`, times another factor of the gradients.

    Args:
        gradients: Of all groups.
        most: The largest norm.
        unscaled: The factor.
    """
    norm = _norm([grad.coalesce() if grad.is_sparse else grad for grad in gradients])
    coefficient = torch.clamp(most / (norm * unscaled + _SMALL), max=1.0)
    return float(coefficient) * unscaled


def _norm(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    """The norm of all gradients; of DTensors as a whole, whatever their placements."""
    alike: dict[Any, list[torch.Tensor]] = {}
    for grad in gradients:
        key = (spec_of(grad).mesh, spec_of(grad).placements) if has_spread([grad]) else None
        alike.setdefault(key, []).append(grad)
    norms = [torch.nn.utils.get_total_norm(each) for each in alike.values()]
    whole = [norm.full_tensor() if has_spread([norm]) else norm for norm in norms]  # type: ignore[attr-defined]
    return whole[0] if len(whole) == 1 else torch.nn.utils.get_total_norm(whole)
