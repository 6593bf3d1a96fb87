"""relations: guards → which sizes others determine, and the few conditions on the sizes that are left.

    gates_size_1 >= 2, old_cell_size_1 >= 2, old_cell_size_1 == gates_size_1 - 2*old_cell_size_1,
    old_cell_size_1 == (gates_size_1 + 2) // 3, gates_size_1 != old_cell_size_1
    becomes  gates_size_1 == 3*old_cell_size_1, old_cell_size_1 >= 2

The result is equivalent to the guards: a step replaces or drops a condition only if the remaining conditions imply that
this changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from opwright.ir.expressions.integer import (
    ZERO,
    Condition,
    Integer,
    Quotient,
    Remainder,
    Symbol,
    integer,
    product,
    replace_atoms,
    substitute,
    symbol,
    symbols_of,
)
from opwright.ir.relations.bounds import Bounds
from opwright.ir.relations.simplified import simplified
from opwright.ir.relations.spans import Span, bounds_in, conditions_of, implied, is_size, span_of

_NEVER = Condition(">=", ZERO, integer(1))
_MOST_ROUNDS = 4
LEAST_SIZE = 2  # of a size that has a symbol: one is traced as a number, and empty tensors are not traced

Way = Callable[[Condition], "tuple[str, Integer] | None"]


@dataclass(frozen=True, slots=True)
class Relations:
    """Guards in solved form.

    Attributes:
        equal: Sizes that others determine.
        conditions: What else must hold of the sizes that are left.
    """

    equal: Mapping[str, Integer]
    conditions: tuple[Condition, ...]

    @property
    def beyond_least(self) -> tuple[Condition, ...]:
        """The conditions, without the lower bound that every symbolic size has."""
        least = integer(LEAST_SIZE)
        return tuple(
            each for each in self.conditions if (each.relation, each.right) != (">=", least) or not is_size(each.left)
        )

    @property
    def guards(self) -> tuple[Condition, ...]:
        """The same as conditions alone: bounds of single sizes, on which the others may rest, come first."""
        bounds = tuple(each for each in self.conditions if is_size(each.left) and each.right.constant is not None)
        equal = tuple(Condition("==", symbol(name), value) for name, value in self.equal.items())
        return (*bounds, *equal, *(each for each in self.conditions if each not in bounds))


def relations(guards: Iterable[Condition]) -> Relations:
    """Solve equalities, merge conditions on the same sum of sizes, and drop what the rest implies."""
    return _relations(tuple(guards))


@lru_cache(maxsize=16)  # the Programs of one derivation have the same guards, and share what is found
def _relations(given: tuple[Condition, ...]) -> Relations:
    guards = _by_name(given)
    bounds = bounds_in(((f, s) for f, s in filter(None, map(span_of, guards)) if is_size(f)))
    solved = _Solved(bounds)
    solved.solve([guard for guard in guards if guard.relation == "=="])
    left = dict.fromkeys(solved.replaced(guard, bounds) for guard in guards)
    conditions = _pruned([c for c in left if c.relation != "==" or c.left != c.right])
    return Relations(
        {name: solved.restored(value) for name, value in solved.determined()},
        (*(solved.restored_condition(each) for each in conditions), *solved.multiples()),
    )


def _by_name(guards: Sequence[Condition]) -> list[Condition]:
    """Replace a quotient by the size it equals, except in the equality that says so."""
    names: dict[Integer, Integer] = {}
    defining: set[Condition] = set()
    for guard in guards:
        for name, value in ((guard.left, guard.right), (guard.right, guard.left)):
            if guard.relation == "==" and is_size(name) and _is_quotient(value) and value not in names:
                names[value] = name
                defining.add(guard)
    return [
        guard if guard in defining else _rewritten(guard, lambda side: replace_atoms(side, names)) for guard in guards
    ]


def _rewritten(condition: Condition, rewrite: Callable[[Integer], Integer]) -> Condition:
    return Condition(condition.relation, rewrite(condition.left), rewrite(condition.right))


class _Solved:
    """Equalities that are solved for one symbol each.

    That a size is a multiple of a number is solved by a symbol for the quotient, `n = 4*[n//4]`, which is written as
    a quotient in the end.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.equal: dict[str, Integer] = {}
        self.parts: dict[str, tuple[str, int]] = {}  # a size, the symbol of its quotient, and the divisor
        self._bounds = bounds

    def solve(self, equalities: Sequence[Condition]) -> None:
        """Solve sums of sizes first, then multiples, then what is left."""
        ways = (_solution_by_sum, self._solution_by_multiple, _solution_by_anything)
        while any(self._solve_one(equalities, way) for way in ways):
            pass

    def _solve_one(self, equalities: Sequence[Condition], way: Way) -> bool:
        for equality in equalities:
            found = way(self._later_first(self.replaced(equality, self._bounds)))
            if found is not None:
                name, value = found
                known = {key: substitute(each, {name: value}) for key, each in self.equal.items()}
                self.equal = {**known, name: value}
                return True
        return False

    def _later_first(self, condition: Condition) -> Condition:
        """Of two sizes that are equal, the one with a later bound is replaced: that of a later argument."""
        order = [*self._bounds.at_least]
        if condition.left in order and condition.right in order[order.index(condition.left) + 1 :]:
            return Condition(condition.relation, condition.right, condition.left)
        return condition

    def _solution_by_multiple(self, condition: Condition) -> tuple[str, Integer] | None:
        found = _multiple(condition.left - condition.right)
        if found is None:
            return None
        name, by = found
        self.parts[name] = (f"[{name}//{by}]", by)
        return name, by * symbol(self.parts[name][0])

    def replaced(self, condition: Condition, bounds: Bounds) -> Condition:
        """A condition on the sizes that are left."""
        return _rewritten(condition, lambda side: simplified(substitute(side, self.equal), bounds))

    def determined(self) -> Iterable[tuple[str, Integer]]:
        """The sizes that others determine, or that are numbers."""
        quotients = {part for part, _ in self.parts.values()}
        free = {name for name, _ in self._open_parts()}
        return ((name, value) for name, value in self.equal.items() if name not in quotients | free)

    def multiples(self) -> Iterable[Condition]:
        """The numbers that otherwise free sizes must be multiples of."""
        return (Condition("==", symbol(name) % by, ZERO) for name, by in self._open_parts())

    def _open_parts(self) -> Iterable[tuple[str, int]]:
        return ((name, by) for name, (part, by) in self.parts.items() if part not in self.equal)

    def restored(self, expression: Integer) -> Integer:
        """An expression in sizes and quotients: `8*[n//4]` is `2*n`."""
        for name, (part, by) in self.parts.items():
            whole, total = symbol(name), ZERO
            for monomial, coefficient in expression.terms:
                factors, multiple = [], coefficient
                for atom in monomial:
                    if atom == Symbol(part):
                        exact = multiple % by == 0
                        multiple = multiple // by if exact else multiple
                        factors.append(whole if exact else whole // by)
                    else:
                        factors.append(substitute(Integer((((atom,), 1),)), {part: whole // by}))
                total = total + multiple * product(factors)
            expression = total
        return expression

    def restored_condition(self, condition: Condition) -> Condition:
        """The same for a condition; `[n//4] >= 2` is `n >= 8`."""
        factor = math.prod(
            by for part, by in self.parts.values() if part in symbols_of(condition.left + condition.right)
        )
        whole = _rewritten(condition, lambda side: self.restored(factor * side))
        if _has_quotients(whole.left) or _has_quotients(whole.right):
            return _rewritten(condition, self.restored)
        return whole


def _is_quotient(expression: Integer) -> bool:
    return len(expression.terms) == 1 and len(expression.terms[0][0]) == 1 and _has_quotients(expression)


def _has_quotients(expression: Integer) -> bool:
    return any(isinstance(atom, Quotient) for monomial, _ in expression.terms for atom in monomial)


def _multiple(difference: Integer) -> tuple[str, int] | None:
    """The symbol and the number if it is `n % 4`, or `n - 4*((n + 3) // 4)`: zero where the symbol is a multiple."""
    match difference.terms:
        case (((Remainder(Integer((((Symbol(name),), 1),)), divisor),), 1 | -1),):
            by = divisor.constant
            return None if by is None or by < 1 else (name, by)
        case (((Symbol(name),), sign), ((Quotient(dividend, divisor),), factor)):
            by, more = divisor.constant, (dividend - symbol(name)).constant
            if by is None or by < 1 or more is None or not 0 <= more < by or abs(sign) != 1 or factor != -sign * by:
                return None
            return name, by
        case _:
            return None


def _solution_by_sum(condition: Condition) -> tuple[str, Integer] | None:
    """One symbol as a sum of others, if there is one."""
    for name, value in _solutions(condition):
        if all(
            coefficient > 0 and all(isinstance(atom, Symbol) for atom in monomial)
            for monomial, coefficient in value.terms
        ):
            return name, value
    return None


def _solution_by_anything(condition: Condition) -> tuple[str, Integer] | None:
    return next(iter(_solutions(condition)), None)


def _solutions(condition: Condition) -> Iterable[tuple[str, Integer]]:
    difference = condition.left - condition.right
    sides = [side for side in (condition.left, condition.right) if is_size(side)]
    alone = [(side.terms[0][0], side.terms[0][1]) for side in sides]
    for monomial, _ in (*alone, *difference.terms):
        coefficient = dict(difference.terms).get(monomial, 0)
        if len(monomial) != 1 or abs(coefficient) != 1 or not isinstance(monomial[0], Symbol):
            continue
        name = monomial[0].name
        value = (difference - Integer(((monomial, coefficient),))) * -coefficient
        if name not in symbols_of(value):
            yield name, value


def _pruned(conditions: Sequence[Condition]) -> list[Condition]:
    """Merge spans, and drop those that others imply, until nothing changes."""
    for _ in range(_MOST_ROUNDS):
        before = conditions
        conditions = _round(conditions)
        if conditions == before:
            break
    return list(conditions)


def _round(conditions: Sequence[Condition]) -> list[Condition]:
    spans: dict[Integer, Span] = {}
    others: list[Condition] = []
    for condition in conditions:
        found = span_of(condition)
        if found is not None:
            spans[found[0]] = spans.get(found[0], Span()).both(found[1])
        elif condition.relation == "==" or not Bounds().always(condition):
            others.append(condition if condition.relation == "==" else _NEVER)
    kept: list[Condition] = []
    order = list(spans)
    for form in sorted(spans, key=_complexity, reverse=True):
        span = spans.pop(form)
        bounds = bounds_in(spans.items())
        simpler = simplified(form, bounds)
        rest = implied(form, span, bounds)
        if simpler != form:  # another form, which the next round merges
            kept += [_simplified(each, bounds) for each in conditions_of(form, rest)]
        elif rest != Span():
            spans[form] = rest
    bounds = bounds_in(spans.items())
    for other in others:
        difference = simplified(other.left - other.right, bounds)
        if other.relation != "==" or difference.constant not in (0, None):
            kept.append(_NEVER)
        elif difference != ZERO:
            kept.append(_simplified(other, bounds))
    order.sort(key=lambda form: not is_size(form))
    return [*(each for form in order if form in spans for each in conditions_of(form, spans[form])), *kept]


def _simplified(condition: Condition, bounds: Bounds) -> Condition:
    return _rewritten(condition, lambda side: simplified(side, bounds))


def _complexity(form: Integer) -> tuple[int, int, str]:
    text = str(form)
    return len(form.terms), len(text), text
