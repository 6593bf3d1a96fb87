"""Buffers that are stored piece by piece: `torch.cat`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opwright.codegen.python.values.sizes import Sizes
from opwright.errors import InternalError
from opwright.ir.expressions.integer import ZERO, Integer


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a buffer: its text, its offset and its extent, by dimension."""

    text: str
    offsets: tuple[Integer, ...]
    extents: tuple[Integer, ...]


def tile(buffer: str, pieces: Sequence[Piece], sizes: Sizes) -> tuple[int, list[Piece]]:
    """Find the dimension along which pieces are joined, and their order.

    Raises:
        InternalError: If they overlap, leave gaps, or do not lie in one line.
    """
    moved = sorted({d for piece in pieces for d, offset in enumerate(piece.offsets) if offset != ZERO})
    if len(moved) != 1:
        raise InternalError(f"the pieces of {buffer} do not lie along one dimension")
    (dimension,) = moved
    ordered: list[Piece] = []
    end = ZERO
    while len(ordered) < len(pieces):
        following = [p for p in pieces if p not in ordered and sizes.same(p.offsets[dimension], end)]
        if not following:
            raise InternalError(f"the pieces of {buffer} leave a gap, or overlap, at {end}")
        ordered.append(following[0])
        end = end + following[0].extents[dimension]
    return dimension, ordered
