"""Which axis of a kernel runs along the axis that is spread over processes, and whether its indices allow that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opwright.ir.expressions.affine import linear_coefficients
from opwright.ir.expressions.integer import ONE, ZERO, Integer, symbol, symbols_of
from opwright.sharding.rules.lies import At
from opwright.sharding.rules.sizes import Sizes, divided, mentions


class NotAlong(Exception):
    """An index does not allow that processes have parts of the axis."""


@dataclass(frozen=True, slots=True)
class Along:
    """The axis of a loop nest that runs along the axis.

    Attributes:
        name: The axis of the nest.
        inner: As of `At`.
        outer: As of `At`.
    """

    name: str
    inner: Integer = ONE
    outer: Integer = ONE


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest: the extents of its axes, and the axis by the symbol of its size.

    Attributes:
        extents: The extent of each axis, spelled in the one way.
        axis: The symbol; None if nothing is spread.
        sizes: The spelling.
    """

    extents: Mapping[str, Integer]
    axis: str | None
    sizes: Sizes

    @classmethod
    def over(cls, extents: Mapping[str, Integer], axis: str | None, sizes: Sizes) -> Nest:
        """A nest whose extents are spelled."""
        return cls({name: sizes.spell(extent) for name, extent in extents.items()}, axis, sizes)

    def along(self, loads: Iterable[tuple[Sequence[Integer], At | None, Integer]]) -> Along | None:
        """The axis of the nest that runs along the axis; None if none does.

        Args:
            loads: For each element that is read: its indices, where the axis is in the buffer, and the size there.

        Raises:
            NotAlong: If several axes would, or none can.
        """
        spread = [name for name, extent in self.extents.items() if mentions(extent, self.axis)]
        if not spread:
            return None
        if len(spread) > 1:
            raise NotAlong("it runs along the axis twice")
        found = {self._carried(indices[at.dimension], at, size) for indices, at, size in loads if at is not None}
        if len(found) > 1:
            raise NotAlong("it pairs different elements of the axis")
        if found:
            return next(iter(found))
        if self.extents[spread[0]] != symbol(str(self.axis)):
            raise NotAlong("it flattens the axis")
        return Along(spread[0])

    def _carried(self, index: Integer, at: At, size: Integer) -> Along:
        """The axis that goes along a dimension; its index must be the whole dimension, in order."""
        spread = linear_coefficients(index, self.extents)
        if spread is None or spread[1] != ZERO:
            raise NotAlong("it starts somewhere along the axis")
        coefficients = {name: self.sizes.spell(by) for name, by in spread[0].items()}
        step, found = ONE, None
        while coefficients:
            name = next((name for name, by in coefficients.items() if by == step), None)
            if name is None:
                raise NotAlong("it steps over elements of the axis")
            del coefficients[name]
            extent = self.extents[name]
            if mentions(extent, self.axis):
                found = self._part(name, extent, step, at)
            step = self.sizes.spell(step * extent)
        if step != size or found is None:
            raise NotAlong("it takes some elements of the axis")
        return found

    def _part(self, name: str, extent: Integer, step: Integer, at: At) -> Along:
        inner = divided(at.inner, step)
        outer = None if inner is None else divided(extent, self.sizes.spell(symbol(str(self.axis)) * inner))
        if inner is None or outer is None:
            raise NotAlong("it takes some elements of the axis")
        return Along(name, inner, outer)

    def check(self, indices: Sequence[Integer], at: At | None, along: Along | None, name: str) -> None:
        """Check that other dimensions are indexed independently of the axis.

        Raises:
            NotAlong: If one is not.
        """
        for dimension, index in enumerate(indices):
            if at is not None and dimension == at.dimension:
                continue
            if along is not None and along.name in symbols_of(index):
                raise NotAlong(f"{name} is indexed by the position along the axis")
            if mentions(self.sizes.spell(index), self.axis):
                raise NotAlong(f"{name} is indexed by the size of the axis")
        if at is not None and along is None:
            raise NotAlong(f"it takes one element of {name} along the axis")
        if at is not None and along is not None and along.name not in symbols_of(indices[at.dimension]):
            raise NotAlong(f"it takes one element of {name} along the axis")
