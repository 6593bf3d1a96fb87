"""The order of a tensor's dimensions in memory, which decides the strides of what eager computes from it.

order = dimensions, outermost first; () where they lie as they are written, as in a contiguous tensor or a slice of one
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

Order = tuple[int, ...]
Orders = tuple[tuple[int, Order, tuple[int, ...]], ...]
"""For each tensor among some arguments: its position, its order, and the dimensions along which it is expanded.

() where the order of each is ()."""

CHANNELS_LAST: dict[int, Order] = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
MEMORY_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
"""What torch calls these orders, by the number of dimensions."""


def order_of(tensor: torch.Tensor) -> Order:
    """The order of a strided tensor; dimensions of one element or of stride 0 go wherever others lie as written."""
    rank = tensor.dim()
    last = CHANNELS_LAST.get(rank)
    sizes, strides = tensor.shape, tensor.stride()
    # Channels last and contiguous at once: eager looks at the stride of the channel.
    is_both = last is not None and sizes[1] == 1 and strides[1] == 1 and any(size != 1 for size in sizes[2:])
    if not is_both and tensor.is_contiguous():
        return ()
    wide = [dimension for dimension in range(rank) if sizes[dimension] != 1 and strides[dimension] != 0]
    found = sorted(wide, key=lambda dimension: (-strides[dimension], -sizes[dimension]))  # equal ones overlap
    if last and found == [dimension for dimension in last if dimension in wide] and (is_both or found != wide):
        return last
    return () if found == wide else (*(d for d in range(rank) if d not in wide), *found)


def is_in_channels_last(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies so, and eager takes it to."""
    return tensor.dim() in CHANNELS_LAST and order_of(tensor) == CHANNELS_LAST[tensor.dim()]


def orders_of(arguments: Iterable[Any]) -> Orders:
    """The orders of the strided tensors among arguments that have several dimensions."""
    tensors = [(p, a) for p, a in enumerate(arguments) if isinstance(a, torch.Tensor) and _is_ordered(a)]
    found = [(position, order_of(tensor), _expanded(tensor)) for position, tensor in tensors]
    return tuple(found) if any(order for _, order, _ in found) else ()


def _is_ordered(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested and tensor.dim() > 1


def _expanded(tensor: torch.Tensor) -> tuple[int, ...]:
    """The dimensions whose elements are all in one place; they lie as those of other operands do."""
    wide = enumerate(zip(tensor.shape, tensor.stride(), strict=True))
    return tuple(dimension for dimension, (size, stride) in wide if size != 1 and stride == 0)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements lie side by side in memory, in any order."""
    order = order_of(tensor)
    return (tensor.permute(order) if order else tensor).is_contiguous()


def in_order(tensor: torch.Tensor, order: Order) -> torch.Tensor:
    """The tensor, or a copy of it, in an order."""
    if order_of(tensor) == order:
        return tensor
    if not order:
        return tensor.contiguous()
    return tensor.permute(order).contiguous().permute([order.index(dimension) for dimension in range(len(order))])


def empty_in(order: Order, expanded: Sequence[int], sizes: Sequence[int], *, dtype: torch.dtype) -> torch.Tensor:
    """A tensor without values that lies so."""
    inner = [1 if dimension in expanded else size for dimension, size in enumerate(sizes)]
    order = order or tuple(range(len(sizes)))
    tensor = torch.empty([inner[dimension] for dimension in order], dtype=dtype)
    return tensor.permute([order.index(dimension) for dimension in range(len(sizes))]).expand(tuple(sizes))
