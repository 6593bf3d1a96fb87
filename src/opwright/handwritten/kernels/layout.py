"""The layouts that kernels ask for: a tensor with another layout is copied."""

from __future__ import annotations

from typing import Literal, get_args

import torch

from opwright.errors import NoKernel
from opwright.tracing.interface.orders import MEMORY_FORMATS

Layout = Literal["any", "contiguous", "channels_last"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


def laid_out(tensor: torch.Tensor, layout: Layout) -> torch.Tensor:
    """The tensor in the requested layout: itself, or a copy.

    Raises:
        NoKernel: If a tensor of its rank cannot have that layout.
    """
    if tensor.is_conj() or tensor.is_neg():
        tensor = (
            tensor.resolve_conj().resolve_neg()
        )  # its memory does not hold the values that it stands for (lazy conjugate or negative)
    if layout == "any":
        return tensor
    if layout == "contiguous":
        return tensor if tensor.is_contiguous() else tensor.contiguous()
    return tensor.contiguous(memory_format=_format(layout, tensor.dim()))


def empty(sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device, layout: Layout) -> torch.Tensor:
    """A new tensor in the requested layout; contiguous if any will do."""
    if layout != "channels_last":
        return torch.empty(sizes, dtype=dtype, device=device)
    return torch.empty(sizes, dtype=dtype, device=device, memory_format=_format(layout, len(sizes)))


def _format(layout: Layout, rank: int) -> torch.memory_format:
    if layout != "channels_last":
        return torch.contiguous_format
    if rank not in MEMORY_FORMATS:
        raise NoKernel(
            f"a tensor with {rank} dimensions cannot be channels_last", hint="channels_last is for 4 or 5 dimensions"
        )
    return MEMORY_FORMATS[rank]
