"""Kernels that write one buffer part by part, one part after another along one dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from opwright.ir.expressions.expression import Expression, Load, apply, cast
from opwright.ir.expressions.integer import ONE, ZERO, Integer
from opwright.ir.program import Buffer, Kernel, Store
from opwright.lowering.nodes import over
from opwright.lowering.views import Indices


@dataclass(frozen=True, slots=True)
class Piece:
    """What is written into a part of a buffer.

    Attributes:
        shape: Of the part.
        at: The element at an index of the part.
    """

    shape: tuple[Integer, ...]
    at: Callable[[Indices], Expression]


def piece_of(buffer: Buffer) -> Piece:
    """A whole buffer."""
    return Piece(buffer.shape, lambda indices: Load(buffer.name, indices, buffer.dtype))


def parts_of(whole: Buffer) -> tuple[Piece, Piece]:
    """The real and the imaginary parts of a buffer of complex numbers, each with a last dimension of one element."""

    def part(function: str) -> Piece:
        shape = (*whole.shape, ONE)
        return Piece(shape, lambda indices: apply(function, Load(whole.name, indices[:-1], whole.dtype)))

    return part("real"), part("imag")


def joined(target: Buffer, pieces: Iterable[Piece], dimension: int) -> Iterator[Kernel]:
    """One kernel for each piece, all storing into one buffer, which they fill.

    Args:
        target: The buffer, with as many dimensions as the pieces.
        pieces: What is written, in order.
        dimension: Along which one piece follows another.
    """
    offset = ZERO
    for position, piece in enumerate(pieces):
        axes, indices = over(piece.shape)
        at = tuple(index + offset if d == dimension else index for d, index in enumerate(indices))
        store = Store(target.name, at, cast(piece.at(indices), target.dtype))
        yield Kernel(f"{target.name}_{position}", (target,) if position == 0 else (), axes, (), (store,))
        offset = offset + piece.shape[dimension]
