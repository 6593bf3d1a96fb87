"""Clipping by the norm of all gradients, as `torch.nn.utils.clip_grad_norm_` does."""

from __future__ import annotations

from collections.abc import Sequence

import torch

_SMALL = 1e-6  # which clip_grad_norm_ adds to the norm


def clip_factor(gradients: Sequence[torch.Tensor], most: float, unscaled: float) -> float:
    """The coefficient of `clip_grad_norm_`, times another factor of the gradients.

    Args:
        gradients: Of all groups.
        most: The largest norm.
        unscaled: The factor.
    """
    norm = torch.nn.utils.get_total_norm([grad.coalesce() if grad.is_sparse else grad for grad in gradients])
    coefficient = torch.clamp(most / (norm * unscaled + _SMALL), max=1.0)
    return float(coefficient) * unscaled
