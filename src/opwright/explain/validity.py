"""For which sizes a Program is valid, in as few conditions as a person needs.

    gates_size_1 >= 2, old_cell_size_1 == gates_size_1 - 2*old_cell_size_1, old_cell_size_1 == (gates_size_1 + 2) // 3
    becomes  gates_size_1 = 3*old_cell_size_1

A size that has a symbol is at least two: a size of one is traced as the number one, and empty tensors are not traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from opwright.ir.expressions.integer import (
    RELATIONS,
    ZERO,
    Condition,
    Greatest,
    Integer,
    Quotient,
    Remainder,
    Symbol,
    greatest,
    product,
    substitute,
    symbol,
    symbols_of,
)

LEAST_SIZE = 2
_TURNED = {"<": ">", "<=": ">="}


@dataclass(frozen=True, slots=True)
class Validity:
    """What guards come to.

    Attributes:
        equal: Sizes that others determine.
        conditions: What else must hold of the sizes that are left.
    """

    equal: dict[str, Integer]
    conditions: tuple[Condition, ...]


def validity(guards: Sequence[Condition]) -> Validity:
    """Solve equalities, and drop what holds for all sizes of at least two."""
    equal: dict[str, Integer] = {}
    for guard in guards:
        solution = _solve(_replace(guard, equal))
        if solution is not None:
            equal = {name: substitute(value, solution) for name, value in equal.items()} | solution
    remaining = dict.fromkeys(_replace(guard, equal) for guard in guards)
    return Validity(equal, tuple(condition for condition in remaining if not _always_holds(condition)))


def _replace(condition: Condition, equal: dict[str, Integer]) -> Condition:
    left, right = (simplify(substitute(side, equal)) for side in (condition.left, condition.right))
    return Condition(condition.relation, left, right)


def _solve(condition: Condition) -> dict[str, Integer] | None:
    """One symbol in terms of the others, if the condition is an equality that a sum of sizes solves."""
    if condition.relation != "==":
        return None
    difference = condition.left - condition.right
    for monomial, coefficient in difference.terms:
        if len(monomial) != 1 or not isinstance(monomial[0], Symbol) or abs(coefficient) != 1:
            continue
        term = Integer(((monomial, coefficient),))
        value = (difference - term) * -coefficient
        if _least(value) is not None and monomial[0].name not in symbols_of(value):
            return {monomial[0].name: value}
    return None


def _always_holds(condition: Condition) -> bool:
    if condition.relation in _TURNED:
        return _always_holds(Condition(_TURNED[condition.relation], condition.right, condition.left))
    difference = condition.left - condition.right
    if difference.constant is not None:
        return RELATIONS[condition.relation](difference.constant, 0)
    match condition.relation:
        case ">=":
            return _at_least(difference, 0)
        case ">":
            return _at_least(difference, 1)
        case "!=":
            return _at_least(difference, 1) or _at_least(-difference, 1)
        case _:
            return False


def _at_least(expression: Integer, bound: int) -> bool:
    least = _least(expression)
    return least is not None and least >= bound


def _least(expression: Integer) -> int | None:
    """The least value of a sum of products of sizes; None if it may shrink as a size grows."""
    total = 0
    for monomial, coefficient in expression.terms:
        if monomial and (coefficient < 0 or not all(isinstance(atom, Symbol) for atom in monomial)):
            return None
        total += coefficient * LEAST_SIZE ** len(monomial)
    return total


def simplify(expression: Integer) -> Integer:
    """Carry out the divisions and maxima that come to the same for all sizes of at least two."""
    total = ZERO
    for monomial, coefficient in expression.terms:
        total = total + coefficient * product(_simplify_atom(atom) for atom in monomial)
    return total


def _simplify_atom(atom: Symbol | Quotient | Remainder | Greatest) -> Integer:
    match atom:
        case Symbol(name):
            return symbol(name)
        case Quotient(dividend, divisor):
            return _divide(simplify(dividend), simplify(divisor))
        case Remainder(dividend, divisor):
            dividend, divisor = simplify(dividend), simplify(divisor)
            quotient = _divide(dividend, divisor)
            return dividend % divisor if quotient == dividend // divisor else dividend - divisor * quotient
        case Greatest(left, right):
            left, right = simplify(left), simplify(right)
            if _at_least(left - right, 0):
                return left
            return right if _at_least(right - left, 0) else greatest(left, right)
        case _:
            assert_never(atom)


def _divide(dividend: Integer, divisor: Integer) -> Integer:
    """`dividend // divisor`, term by term where what is left over is a number smaller than the divisor."""
    whole, rest = ZERO, ZERO
    for monomial, coefficient in dividend.terms:
        term = Integer(((monomial, coefficient),))
        quotient = _exact_quotient(term, divisor)
        whole, rest = (whole, rest + term) if quotient is None else (whole + quotient, rest)
    left_over, least = rest.constant, _least(divisor)
    if left_over is None or least is None or not -least <= left_over < least:
        return dividend // divisor
    return whole + left_over // least


def _exact_quotient(term: Integer, divisor: Integer) -> Integer | None:
    """The quotient of one term and a divisor of one term, if nothing is left over."""
    if len(divisor.terms) != 1:
        return None
    ((atoms, factor),) = divisor.terms
    ((monomial, coefficient),) = term.terms
    remaining = list(monomial)
    for atom in atoms:
        if atom not in remaining:
            return None
        remaining.remove(atom)
    return Integer(((tuple(remaining), coefficient // factor),)) if coefficient % factor == 0 else None
