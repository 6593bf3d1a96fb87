"""The grid that a CUDA kernel is launched with: its blocks and threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opwright.errors import ImplementationRefused, Place

THREADS = 256
_MOST_THREADS = 1024
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)

Grid = tuple[int, int, int, int, int, int]
"""The number of blocks along x, y and z, and of threads along each."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The grid of every launch of a rung.

    Attributes:
        threads: The threads of a block along x, y and z.
        blocks: `(arguments of the operator…) -> number of blocks` along x, y and z; None to give every element of the
            first result a thread.
        place: The file and line for errors.
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
            ImplementationRefused: If CUDA cannot launch it.
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
                hint=f"blocks= must return 1 to {_MOST_BLOCKS} blocks",
            )
        return (*blocks, *self.threads)


def geometry(threads: int | Sequence[int], blocks: Callable[..., Sequence[int] | int] | None, place: Place) -> Geometry:
    """Read `threads=` and `blocks=` of `implement`.

    Raises:
        ImplementationRefused: If a block cannot have so many threads.
    """
    each = _three(threads)
    if min(each) < 1 or each[0] * each[1] * each[2] > _MOST_THREADS:
        raise ImplementationRefused(
            f"a block of {threads} threads cannot be launched",
            place=place,
            hint=f"threads= is one number of at most {_MOST_THREADS}, or three whose product is",
        )
    return Geometry(each, blocks, place)


def _three(given: int | Sequence[int]) -> tuple[int, int, int]:
    numbers = (given,) if isinstance(given, int) else tuple(given)
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return x, y, z
