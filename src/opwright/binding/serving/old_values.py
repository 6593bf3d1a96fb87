"""Copies of what a call changes, for its backward pass, which reads the old values."""

from __future__ import annotations

import torch

from opwright.binding.environment import are_plain
from opwright.tracing.interface.memory import is_whole_memory, may_overlap_itself


def copied_as_it_lies(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same history, and with gaps where the tensor has gaps: kernels may be for others only."""
    if not are_plain((tensor,)) or is_whole_memory(tensor) or may_overlap_itself(tensor):
        return tensor.clone()
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    reach = sum((size - 1) * stride for size, stride in steps) + 1 if tensor.numel() else 0
    memory = torch.empty(1 + reach, dtype=tensor.dtype, device=tensor.device)  # of which it is a part
    return memory.as_strided(tensor.shape, tensor.stride(), 1).copy_(tensor)
