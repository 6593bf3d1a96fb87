"""Interpolation as torch.lerp computes it, in kernels that choose nothing for each element."""

from __future__ import annotations

import torch


def lerp(start: torch.Tensor, end: torch.Tensor, weight: float | torch.Tensor) -> torch.Tensor:
    """Return torch.lerp of a number, which has another formula from 0.5 on; each has kernels of its own.

    Args:
        start: What a weight of 0 gives.
        end: What a weight of 1 gives.
        weight: A number, or a tensor without dimensions.
    """
    if isinstance(weight, torch.Tensor):
        return torch.lerp(start, end, weight.to(start.dtype))
    if weight < 0.5:
        return start + weight * (end - start)
    return end - (end - start) * (1 - weight)
