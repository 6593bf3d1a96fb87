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


def seed_of_step(seed: int, count: int) -> int:
    """The seed of one step.

    Args:
        seed: Of the optimizer.
        count: How many steps have drawn from it, with this one.
    """
    return (seed * 0x9E3779B97F4A7C15 + count * 0xD1342543DE82EF95) % 2**64
