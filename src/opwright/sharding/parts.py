"""The parts of a tensor, as `torch.distributed.tensor` cuts them: `torch.chunk`, the last parts shorter or empty."""

from __future__ import annotations

import torch
from torch.distributed.tensor import Partial, Shard
from torch.distributed.tensor.placement_types import Placement


def part_size(size: int, count: int, index: int) -> int:
    """The size of one of the parts of a dimension."""
    full = -(-size // count)
    return max(0, min(full, size - full * index))


def part_of(tensor: torch.Tensor, dimension: int, count: int, index: int) -> torch.Tensor:
    """One of the parts of a tensor."""
    full = -(-tensor.shape[dimension] // count)
    start = min(full * index, tensor.shape[dimension])
    return tensor.narrow(dimension, start, part_size(tensor.shape[dimension], count, index))


def neutral(shape: tuple[int, ...], dtype: torch.dtype, placement: Placement, device: torch.device) -> torch.Tensor:
    """What a process without elements adds to a result that is put together from all processes.

    Args:
        shape: Of the result.
        dtype: Its dtype.
        placement: How it is put together.
        device: Its device.
    """
    function = placement.reduce_op if isinstance(placement, Partial) else "sum"
    if function not in ("max", "min"):
        return torch.zeros(shape, dtype=dtype, device=device)
    lowest = function == "max"
    if dtype.is_floating_point:
        number: float = float("-inf") if lowest else float("inf")
    elif dtype is torch.bool:
        number = not lowest
    else:
        number = torch.iinfo(dtype).min if lowest else torch.iinfo(dtype).max
    return torch.full(shape, number, dtype=dtype, device=device)


def put_together(parts: list[torch.Tensor], placement: Placement) -> torch.Tensor:
    """The whole tensor of what the processes have; all the same where they have the whole one."""
    match placement:
        case Shard(dim=dimension):
            return torch.cat(parts, dimension)
        case Partial(reduce_op="max"):
            return torch.stack(parts).amax(0)
        case Partial(reduce_op="min"):
            return torch.stack(parts).amin(0)
        case Partial():
            return torch.stack(parts).sum(0)
        case _:
            return parts[0]
