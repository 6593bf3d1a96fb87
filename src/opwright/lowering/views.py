"""View operations as index maps: for each dimension of the base, its index in terms of the view's dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from opwright.ir.expressions.integer import ONE, ZERO, Integer, greatest, integer, is_never_negative, product, symbol
from opwright.ir.program import view_axes

aten = torch.ops.aten
_LAST = 2**63 - 1  # the end of a slice that goes to the end
Shape = Sequence[Integer]
Indices = tuple[Integer, ...]
Arguments = Mapping[str, Any]
Rule = Callable[[Shape, Shape, Arguments], Indices | None]


def _axes(shape: Shape) -> list[Integer]:
    return [symbol(name) for name in view_axes(len(shape))]


def _dimension(arguments: Arguments, rank: int, name: str = "dim") -> int:
    value = int(arguments.get(name, 0))
    return value + rank if value < 0 else value


def _same(base: Shape, view: Shape, arguments: Arguments) -> Indices:
    return tuple(_axes(view))


def _permute(base: Shape, view: Shape, arguments: Arguments) -> Indices:
    axes = _axes(view)
    indices = [ZERO] * len(base)
    for position, dimension in enumerate(arguments["dims"]):
        indices[dimension] = axes[position]
    return tuple(indices)


def _transpose(base: Shape, view: Shape, arguments: Arguments) -> Indices:
    axes = _axes(view)
    first, second = _dimension(arguments, len(base), "dim0"), _dimension(arguments, len(base), "dim1")
    axes[first], axes[second] = axes[second], axes[first]
    return tuple(axes)


def _t(base: Shape, view: Shape, arguments: Arguments) -> Indices:
    return tuple(reversed(_axes(view)))


def _expand(base: Shape, view: Shape, arguments: Arguments) -> Indices:
    axes = _axes(view)[len(view) - len(base) :]
    return tuple(ZERO if size == ONE else axis for size, axis in zip(base, axes, strict=True))


def _unsqueeze(base: Shape, view: Shape, arguments: Arguments) -> Indices:
    added = _dimension(arguments, len(view))
    return tuple(axis for position, axis in enumerate(_axes(view)) if position != added)


def _slice(base: Shape, view: Shape, arguments: Arguments) -> Indices | None:
    indices = _axes(view)
    dimension = _dimension(arguments, len(base))
    step = integer(arguments.get("step") or 1)
    start = _slice_start(arguments, step, base[dimension], view[dimension])
    if start is None:
        return None
    indices[dimension] = indices[dimension] * step + start
    return tuple(indices)


def _slice_start(arguments: Arguments, step: Integer, size: Integer, extent: Integer) -> Integer | None:
    """Where a slice begins; a start before the first element is the first, as in Python."""
    start = integer(arguments.get("start") or 0)
    end = arguments.get("end")
    if is_never_negative(start):
        return start
    if step == ONE and (end is None or end == _LAST):
        return size - extent
    if step == ONE and end is not None and is_never_negative(integer(end)) and integer(end) - start == extent:
        return start  # which is not negative: counted from the end, it would leave fewer elements than that
    return None if start.constant is None else greatest(size + start, ZERO)


def _select(base: Shape, view: Shape, arguments: Arguments) -> Indices | None:
    indices = _axes(view)
    dimension = _dimension(arguments, len(base))
    index = _from_end(arguments["index"], base[dimension])
    if index is None:
        return None
    indices.insert(dimension, index)
    return tuple(indices)


def _from_end(start: Any, size: Integer) -> Integer | None:
    """A nonnegative index; None if its sign depends on the sizes."""
    index = integer(start)
    if is_never_negative(index):
        return index
    return None if index.constant is None else size + index


def _reshape(base: Shape, view: Shape, arguments: Arguments) -> Indices | None:
    """Match dimensions from the left: equal ones, ones added or dropped, one split, or several merged.

    A merged dimension is indexed with quotients and remainders.
    """
    axes = _axes(view)
    indices: list[Integer] = []
    i = j = 0
    while i < len(base) or j < len(view):
        if i < len(base) and j < len(view) and base[i] == view[j]:
            indices.append(axes[j])
            i, j = i + 1, j + 1
        elif i < len(base) and base[i] == ONE:
            indices.append(ZERO)
            i += 1
        elif j < len(view) and view[j] == ONE:
            j += 1
        elif i < len(base) and (end := _prefix(view, j, base[i])) is not None:
            indices.append(_flat(axes[j:end], view[j:end]))
            i, j = i + 1, end
        elif j < len(view) and (end := _prefix(base, i, view[j])) is not None:
            indices.extend(_unflat(axes[j], base[i:end]))
            i, j = end, j + 1
        else:
            return None
    return tuple(indices)


def _prefix(shape: Shape, begin: int, target: Integer) -> int | None:
    for end in range(begin + 2, len(shape) + 1):
        if product(shape[begin:end]) == target:
            return end
    return None


def _flat(axes: Sequence[Integer], sizes: Shape) -> Integer:
    index = ZERO
    for axis, size in zip(axes, sizes, strict=True):
        index = index * size + axis
    return index


def _unflat(axis: Integer, sizes: Shape) -> list[Integer]:
    indices = []
    for position, size in enumerate(sizes):
        inner = product(sizes[position + 1 :])
        quotient = axis // inner
        indices.append(quotient if position == 0 else quotient % size)
    return indices


VIEWS: dict[Any, Rule] = {
    aten.alias: _same,
    aten.detach: _same,
    aten.permute: _permute,
    aten.transpose: _transpose,
    aten.t: _t,
    aten.expand: _expand,
    aten.unsqueeze: _unsqueeze,
    aten.squeeze: _reshape,
    aten.slice: _slice,
    aten.select: _select,
    aten.view: _reshape,
    aten._unsafe_view: _reshape,
    aten.reshape: _reshape,
}


def split_indices(base: Shape, view: Shape, dimension: int, offset: Integer) -> Indices:
    """One piece of a split along `dimension`, beginning at `offset`."""
    indices = _axes(view)
    indices[dimension] = indices[dimension] + offset
    return tuple(indices)
