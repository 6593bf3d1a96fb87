"""Lower bounds of sizes, which are never negative, and what follows from them.

    a >= 2, b >= a + 1        give a*b >= 6

Every size is written as its lower bound plus a number that is not negative: `a = 2 + a'`, `b = a + 1 + b'`. An
expression without negative coefficients is then at least its constant term: `a*b = (2 + a')*(3 + a' + b')`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opwright.ir.expressions.integer import (
    RELATIONS,
    ZERO,
    Atom,
    Condition,
    Greatest,
    Integer,
    Quotient,
    Remainder,
    Symbol,
    integer,
    product,
    symbol,
    symbols_of,
)

REVERSED = {"<": ">", "<=": ">="}


@dataclass(frozen=True)
class Bounds:
    """What is known of sizes; what follows from it is found once.

    Attributes:
        at_least: Expressions without a constant term, and what each is at least.
    """

    at_least: Mapping[Integer, int] = field(default_factory=dict)

    @cached_property
    def comparisons(self) -> Mapping[Atom, tuple[Integer, int]]:
        """The first bound of a sum that a size, quotient or maximum stands alone in, by that atom."""
        found: dict[Atom, tuple[Integer, int]] = {}
        for form, bound in self.at_least.items():
            for monomial, coefficient in form.terms if len(form.terms) > 1 else ():
                if len(monomial) == coefficient == 1:
                    found.setdefault(monomial[0], (form, bound))
        return found

    @cached_property
    def simplifications(self) -> dict[Integer, Integer]:
        """Expressions, and what `simplified` has made of them."""
        return {}

    @cached_property
    def shifted(self) -> dict[tuple[Atom, bool, frozenset[Atom]], Integer]:
        """Atoms, how they were written and inside of which others, and what was written."""
        return {}

    @cached_property
    def _least(self) -> dict[tuple[Integer, bool], int | None]:
        return {}

    def always(self, condition: Condition) -> bool:
        """Whether a condition follows from the bounds; false also if that cannot be shown."""
        if condition.relation in REVERSED:
            condition = Condition(REVERSED[condition.relation], condition.right, condition.left)
        difference = condition.left - condition.right
        if difference.constant is not None:
            return RELATIONS[condition.relation](difference.constant, 0)
        match condition.relation:
            case ">=":
                return self.is_at_least(difference, 0)
            case ">":
                return self.is_at_least(difference, 1)
            case "!=":
                return self.is_at_least(difference, 1) or self.is_at_least(-difference, 1)
            case _:
                return False

    def is_at_least(self, expression: Integer, bound: int) -> bool:
        """Whether an expression is at least `bound` for all sizes."""
        found = (self._least_of(expression, related) for related in (False, True))
        return any(least is not None and least >= bound for least in found)

    def least_of(self, expression: Integer) -> int | None:
        """The lower bound of an expression; None if none is known."""
        found = [self._least_of(expression, related) for related in (False, True)]
        return max((bound for bound in found if bound is not None), default=None)

    def _least_of(self, expression: Integer, related: bool) -> int | None:
        key = (expression, related)
        if key not in self._least:
            self._least[key] = _constant_term(_Shifted(self, related).of(expression))
        return self._least[key]


@dataclass(slots=True)
class _Shifted:
    """Writes expressions as bounds plus nonnegative symbols; symbols without a bound stay.

    With `related`, a size is measured from the sizes that it is compared with, else from its own bound alone.
    """

    bounds: Bounds
    related: bool
    under_way: set[Atom] = field(default_factory=set)

    def of(self, expression: Integer) -> Integer:
        total = ZERO
        for monomial, coefficient in expression.terms:
            total = total + coefficient * product(map(self._atom, monomial))
        return total

    def _atom(self, atom: Atom) -> Integer:
        known, key = self.bounds.shifted, (atom, self.related, frozenset(self.under_way))
        if key not in known:
            known[key] = self._of_atom(atom)
        return known[key]

    def _of_atom(self, atom: Atom) -> Integer:
        itself = Integer((((atom,), 1),))
        if self.related and atom not in self.under_way and (compared := self.bounds.comparisons.get(atom)):
            form, bound = compared
            self.under_way.add(atom)
            rest = self.of(itself - form)
            self.under_way.remove(atom)
            return rest + bound + symbol(f"{_NOT_NEGATIVE}{form}")
        known = self.bounds.at_least.get(itself)
        least = max((bound for bound in (known, self._own_bound(atom)) if bound is not None), default=None)
        return symbol(str(itself)) if least is None else integer(least) + symbol(f"{_NOT_NEGATIVE}{itself}")

    def _own_bound(self, atom: Atom) -> int | None:
        match atom:
            case Symbol():
                return 0
            case Quotient(dividend, divisor):
                least, positive = self._least(dividend), self._least(divisor)
                if least is None or positive is None or positive < 1:
                    return None
                return least // divisor.constant if divisor.constant else (0 if least >= 0 else None)
            case Remainder(_, divisor):
                positive = self._least(divisor)
                return 0 if positive is not None and positive >= 1 else None
            case Greatest(left, right):
                found = (self._least(left), self._least(right))
                return max((bound for bound in found if bound is not None), default=None)

    def _least(self, expression: Integer) -> int | None:
        return _constant_term(self.of(expression))


_NOT_NEGATIVE = "+"


def _constant_term(shifted: Integer) -> int | None:
    constant = 0
    for monomial, coefficient in shifted.terms:
        if not monomial:
            constant = coefficient
        elif coefficient < 0 or not all(name.startswith(_NOT_NEGATIVE) for name in _names(monomial)):
            return None
    return constant


def _names(monomial: tuple[Atom, ...]) -> frozenset[str]:
    return symbols_of(Integer(((monomial, 1),)))
