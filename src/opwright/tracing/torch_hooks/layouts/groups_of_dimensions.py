"""Which dimensions of a shape become which of another one in a view: those that hold as many elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any


def groups_of_dimensions(left: Sequence[int], right: Sequence[int]) -> list[tuple[slice, slice]] | None:
    """Cut two shapes into pairs of neighbours that hold as many elements, as many pairs as can be.

    `(2, 21, 96)` and `(2, 3, 7, 96)` give `(2)` and `(2)`, `(21)` and `(3, 7)`, `(96)` and `(96)`.

    Args:
        left: The sizes of one.
        right: The sizes of the other.

    Returns:
        The dimensions of each pair, from the first on; sizes of one at the end belong to the last pair. None if the
        shapes do not hold as many elements, or hold none.
    """
    if prod(left) != prod(right) or 0 in (*left, *right):
        return None
    groups = [(slice(0, 0), slice(0, 0))]
    i, j = 0, 0
    while i < len(left) and j < len(right):
        begin, (i, j) = (i, j), (i + 1, j + 1)
        while (ours := prod(left[begin[0] : i])) != (theirs := prod(right[begin[1] : j])):
            i, j = (i + 1, j) if ours < theirs else (i, j + 1)
        groups.append((slice(begin[0], i), slice(begin[1], j)))
    ours_last, theirs_last = groups.pop()
    return [*groups[1:], (slice(ours_last.start, len(left)), slice(theirs_last.start, len(right)))]


def hinted(size: Any) -> int:
    """A size of the arguments that the trace is for; 0 if it depends on data."""
    if type(size) is int:
        return size
    return int(size.node.hint) if size.node.has_hint() else 0
