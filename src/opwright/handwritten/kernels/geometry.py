"""How many blocks of how many threads a CUDA kernel is launched with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opwright.errors import ImplementationRefused, Place

THREADS = 256
_MOST_THREADS = 1024
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)

Grid = tuple[int, int, int, int, int, int]
"""Blocks along x, y and z, and threads along each."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The grid of every launch of a rung.

    Attributes:
        threads: How many threads a block has along x, y and z.
        blocks: `(arguments of the operator…) -> how many blocks`, along x, y and z; None for as many as give every
            element of the first result a thread.
        place: Whom to name if that is no grid.
    """

    threads: tuple[int, int, int]
    blocks: Callable[..., Sequence[int] | int] | None
    place: Place

    def grid(self, args: Sequence[Any], count: int) -> Grid:
        """The grid for a call.

        Args:
            args: The arguments of the operator.
            count: The number of elements of the first result.

        Raises:
            ImplementationRefused: If it is none that CUDA launches.
        """
        if self.blocks is None:
            in_a_block = self.threads[0] * self.threads[1] * self.threads[2]
            blocks = (-(-count // in_a_block), 1, 1)
        else:
            blocks = _three(self.blocks(*args))
        if not all(1 <= number <= most for number, most in zip(blocks, _MOST_BLOCKS, strict=True)):
            raise ImplementationRefused(
                f"a grid of {blocks} blocks cannot be launched",
                place=self.place,
                hint=f"blocks= gives from 1 to {_MOST_BLOCKS} of them",
            )
        return (*blocks, *self.threads)


def geometry(threads: int | Sequence[int], blocks: Callable[..., Sequence[int] | int] | None, place: Place) -> Geometry:
    """Read what `implement` was given.

    Raises:
        ImplementationRefused: If no block can have so many threads.
    """
    each = _three(threads)
    if min(each) < 1 or each[0] * each[1] * each[2] > _MOST_THREADS:
        raise ImplementationRefused(
            f"a block of {threads} threads cannot be launched",
            place=place,
            hint=f"threads= is a number, or three with a product, of at most {_MOST_THREADS}",
        )
    return Geometry(each, blocks, place)


def _three(given: int | Sequence[int]) -> tuple[int, int, int]:
    numbers = (given,) if isinstance(given, int) else tuple(given)
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return x, y, z
