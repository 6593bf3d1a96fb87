"""Whether two views of one memory have elements in common at places that differ, at the sizes of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch


def may_overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether an element of one view may be another element of the other; False if both are the same view."""
    if one is other or 0 in one.shape or 0 in other.shape:
        return False
    mine, its = _numbers(one), _numbers(other)
    if mine is None or its is None:
        return True
    if mine == its:
        return False
    (shape, strides, offset), (shape_of_other, strides_of_other, offset_of_other) = mine, its
    ends = offset + _reach(shape, strides), offset_of_other + _reach(shape_of_other, strides_of_other)
    if ends[0] < offset_of_other or ends[1] < offset:
        return False
    if strides != strides_of_other:
        return True
    steps = zip(strides, map(max, shape, shape_of_other), strict=True)
    return _is_reached(offset_of_other - offset, sorted((s for s in steps if s[0] and s[1] > 1), reverse=True))


def _is_reached(distance: int, steps: Sequence[tuple[int, int]]) -> bool:
    """Whether a distance is a sum of fewer steps, forth or back, along each dimension than it has elements."""
    if not steps:
        return distance == 0
    (stride, size), *rest = steps
    return any(abs(count) < size and _is_reached(distance - count * stride, rest) for count in _near(distance, stride))


def _near(distance: int, stride: int) -> Iterator[int]:
    """How often a step may be taken: what remains is less than a step, as smaller dimensions lie within larger ones."""
    below = distance // stride
    yield below
    yield below + 1


def _reach(shape: Sequence[int], strides: Sequence[int]) -> int:
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _numbers(tensor: torch.Tensor) -> tuple[list[int], list[int], int] | None:
    """Sizes, strides and offset of the trace; None if one is not known."""
    shape, strides = [_number(size) for size in tensor.shape], [_number(stride) for stride in tensor.stride()]
    offset: Any = _number(tensor.storage_offset())
    return None if None in (*shape, *strides, offset) else (shape, strides, offset)  # type: ignore[return-value]


def _number(size: Any) -> int | None:
    known: int | None = size.node.hint if isinstance(size, torch.SymInt) else size
    return known
