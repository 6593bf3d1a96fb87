"""How a buffer of a Program lies when every process runs the Program on its own part of one axis.

    lies = Lies(kind, at, power, why)

    same      a process computes what the whole computation has there; its own part, if the buffer has the axis
    sum       it computes an addend: the sum over the processes is what the whole computation has
    maximum   the maximum over the processes is; minimum likewise
    unknown   it computes something else; `why` says what made it so

A size of the axis that is used as a number is smaller on a process than in the whole computation. What is computed
from it is `(own size / whole size) ** power` times what it should be, which can be mended at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from opwright.ir.expressions.integer import ONE, Integer

Kind = Literal["same", "sum", "maximum", "minimum", "unknown"]


@dataclass(frozen=True, slots=True)
class At:
    """Where the axis is in a buffer: `index // inner % axis` of a dimension.

    Attributes:
        dimension: The dimension.
        inner: How many elements of the dimension belong to one element of the axis; 1 unless it was flattened.
        outer: How often the whole axis is in the dimension; 1 unless it was flattened.
    """

    dimension: int
    inner: Integer = ONE
    outer: Integer = ONE

    @property
    def is_whole(self) -> bool:
        """Whether the dimension is the axis and nothing else."""
        return self.inner == ONE and self.outer == ONE


@dataclass(frozen=True, slots=True)
class Lies:
    """How a buffer, or a value in a kernel, lies; see the top of this module.

    Attributes:
        kind: As told there.
        at: As told there.
        power: As told there.
        why: As told there.
        is_zero: Whether all of it is zero, which is also a sum of zeros.
    """

    kind: Kind = "same"
    at: At | None = None
    power: int = 0
    why: str = ""
    is_zero: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is what the whole computation has."""
        return self.kind == "same" and not self.power

    def moved(self, at: At | None) -> Lies:
        """The same where the axis is elsewhere."""
        return replace(self, at=at)

    def joined(self, other: Lies) -> Lies:
        """How a buffer lies of which some elements lie so, and others otherwise: several kernels wrote it."""
        if "unknown" in (self.kind, other.kind):
            return self if self.kind == "unknown" else other
        if self.at != other.at:
            return unknown("its elements are written in several ways along the axis")
        if other.is_zero and self.kind in ("same", "sum"):
            return self
        if self.is_zero and other.kind in ("same", "sum"):
            return other
        if (self.kind, self.power) == (other.kind, other.power):
            return self
        return unknown("some of its elements are reductions over the axis, and others are not")


SAME = Lies()


def unknown(why: str) -> Lies:
    """Something that no rule can use."""
    return Lies("unknown", why=why)
