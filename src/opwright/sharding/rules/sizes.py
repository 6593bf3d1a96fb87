"""Sizes in one spelling: those that the guards make equal are spelled alike, so that an axis has one symbol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opwright.ir.expressions.integer import ONE, ZERO, Integer, Monomial, substitute, symbols_of
from opwright.ir.program import Program
from opwright.ir.relations.relations import relations


@dataclass(slots=True)
class Sizes:
    """The spelling of sizes.

    Attributes:
        equal: Sizes that others determine.
    """

    equal: Mapping[str, Integer]
    _known: dict[Integer, Integer] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program) -> Sizes:
        """That of a Program, by its guards."""
        return cls(relations(program.guards).equal)

    def spell(self, size: Integer) -> Integer:
        """A size in the one spelling."""
        if size not in self._known:
            found = size
            for _ in range(len(self.equal) + 1):
                if (again := substitute(found, self.equal)) == found:
                    break
                found = again
            self._known[size] = found
        return self._known[size]

    def shape(self, shape: Sequence[Integer]) -> tuple[Integer, ...]:
        """All sizes of a shape."""
        return tuple(self.spell(size) for size in shape)


def mentions(size: Integer, axis: str | None) -> bool:
    """Whether an axis, given by the symbol of its size, takes part in a size or an index."""
    return axis is not None and axis in symbols_of(size)


def divided(size: Integer, by: Integer) -> Integer | None:
    """The exact quotient of two sizes; None if it is not found."""
    if by == ONE:
        return size
    if size == by:
        return ONE
    if len(by.terms) != 1:
        return None
    monomial, coefficient = by.terms[0]
    total = ZERO
    for own, count in size.terms:
        rest = _without(own, monomial)
        if rest is None or count % coefficient:
            return None
        total = total + Integer(((rest, count // coefficient),))
    return total


def _without(monomial: Monomial, other: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in other:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
