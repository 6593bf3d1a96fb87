"""simplified: an integer expression → the same without divisions and maxima that bounds of the sizes decide."""

from __future__ import annotations

from typing import assert_never

from opwright.ir.expressions.integer import (
    ZERO,
    Atom,
    Greatest,
    Integer,
    Quotient,
    Remainder,
    Symbol,
    greatest,
    product,
    symbol,
)
from opwright.ir.relations.bounds import Bounds


def simplified(expression: Integer, bounds: Bounds) -> Integer:
    """Replace divisions and maxima whose result is the same expression for all sizes within bounds.

    `(3*a + 2) // 3` becomes `a`; `max(1, a)` becomes `a` where `a` is at least one.
    """
    if all(isinstance(atom, Symbol) for monomial, _ in expression.terms for atom in monomial):
        return expression
    known = bounds.simplifications
    if expression not in known:
        total = ZERO
        for monomial, coefficient in expression.terms:
            total = total + coefficient * product(_atom(atom, bounds) for atom in monomial)
        known[expression] = total
    return known[expression]


def _atom(atom: Atom, bounds: Bounds) -> Integer:
    match atom:
        case Symbol(name):
            return symbol(name)
        case Quotient(dividend, divisor):
            return _divided(simplified(dividend, bounds), simplified(divisor, bounds), bounds)
        case Remainder(dividend, divisor):
            dividend, divisor = simplified(dividend, bounds), simplified(divisor, bounds)
            quotient = _divided(dividend, divisor, bounds)
            return dividend % divisor if quotient == dividend // divisor else dividend - divisor * quotient
        case Greatest(left, right):
            left, right = simplified(left, bounds), simplified(right, bounds)
            if bounds.is_at_least(left - right, 0):
                return left
            return right if bounds.is_at_least(right - left, 0) else greatest(left, right)
        case _:
            assert_never(atom)


def _divided(dividend: Integer, divisor: Integer, bounds: Bounds) -> Integer:
    """`dividend // divisor`, term by term where what is left over is a number smaller than the divisor."""
    whole, rest = ZERO, ZERO
    for monomial, coefficient in dividend.terms:
        term = Integer(((monomial, coefficient),))
        quotient = _exact_quotient(term, divisor)
        whole, rest = (whole, rest + term) if quotient is None else (whole + quotient, rest)
    left_over, by = rest.constant, divisor.constant
    if left_over is not None and by is not None and by > 0:
        return whole + left_over // by
    least = None if left_over is None else bounds.least_of(divisor)
    if left_over is not None and least is not None and least >= 1 and -least <= left_over < least:
        return whole + left_over // least
    if bounds.is_at_least(divisor - dividend, 1) and bounds.is_at_least(dividend, 0):
        return ZERO
    return dividend // divisor


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
