"""The memory of tensors: which share it, and which fill it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


def memory_of(tensor: torch.Tensor) -> int:
    """A key of a tensor's storage, unique among living tensors."""
    return int(tensor.untyped_storage()._cdata)


def given_twice(arguments: Iterable[Any]) -> tuple[tuple[int, int], ...]:
    """The positions of tensors that are given again, each after the first with the same tensor."""
    first: dict[int, int] = {}
    tensors = ((position, id(each)) for position, each in enumerate(arguments) if isinstance(each, torch.Tensor))
    met = ((first.setdefault(identity, position), position) for position, identity in tensors)
    return tuple(pair for pair in met if pair[0] != pair[1])


def may_overlap_itself(tensor: torch.Tensor) -> bool:
    """Whether two elements of a tensor may be in one place; `native/overlap.h` in Python.

    They are not if every step is longer than all that lies within it. Strides that interleave, (2, 3) for sizes of 3
    and 2, are taken for ones that overlap.
    """
    steps = sorted((stride, size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1)
    reach = 0
    for stride, size in steps:
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def lie_row_by_row(arguments: Iterable[Any], *, whole_memory: bool) -> bool:
    """Whether every tensor is contiguous and, if asked for, fills its storage."""
    tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
    if not all(tensor.is_contiguous() for tensor in tensors):
        return False
    return not whole_memory or all(map(is_whole_memory, tensors))


def laid_row_by_row(values: Iterable[Any], *, whole_memory: bool) -> list[Any]:
    """Copies in place of the tensors for which `lie_row_by_row` would say no."""
    return [
        value.clone(memory_format=torch.contiguous_format)
        if not lie_row_by_row((value,), whole_memory=whole_memory)
        else value
        for value in values
    ]


def is_whole_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor fills its storage."""
    return tensor.storage_offset() == 0 and tensor.untyped_storage().nbytes() == tensor.nbytes
