"""Rounding at random, as ordinary operations."""

from __future__ import annotations

import torch


def rounded_at_random(value: torch.Tensor, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Round to one of the two nearest numbers of a half type, so that the mean is exact.

    Args:
        value: Of a wider dtype.
        dtype: bfloat16 or float16; for others, and for values that are not finite, this rounds to nearest.
        generator: Where random numbers come from.
    """
    if value.dtype.itemsize <= dtype.itemsize or dtype not in (torch.bfloat16, torch.float16):
        return value.to(dtype)
    size = value.abs()
    nearest = size.to(dtype)
    below = nearest.view(torch.int16) - (nearest.to(value.dtype) > size).to(torch.int16)
    low, high = (bits.view(dtype).to(value.dtype) for bits in (below, below + 1))
    share = torch.rand(value.shape, generator=generator, dtype=value.dtype, device=value.device)
    chosen = torch.where(share * (high - low) < size - low, high, low)
    return torch.where(torch.isfinite(nearest) & torch.isfinite(chosen), chosen.copysign(value), value).to(dtype)
