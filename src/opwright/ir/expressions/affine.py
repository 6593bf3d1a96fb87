"""linear_coefficients: an integer expression that is affine in some axes → its coefficients and the rest."""

from __future__ import annotations

from collections.abc import Iterable

from opwright.ir.expressions.integer import ZERO, Integer, Symbol, symbols_of


def linear_coefficients(expression: Integer, axes: Iterable[str]) -> tuple[dict[str, Integer], Integer] | None:
    """Split `expression` into one coefficient per axis and a rest without axes; None if it is not affine in them."""
    names = set(axes)
    coefficients: dict[str, Integer] = {}
    rest = ZERO
    for monomial, coefficient in expression.terms:
        inside = [atom for atom in monomial if symbols_of(Integer((((atom,), 1),))) & names]
        if not inside:
            rest = rest + Integer(((monomial, coefficient),))
            continue
        if len(inside) != 1 or not isinstance(inside[0], Symbol):
            return None
        axis = inside[0].name
        others = tuple(atom for atom in monomial if atom != inside[0])
        coefficients[axis] = coefficients.get(axis, ZERO) + Integer(((others, coefficient),))
    return coefficients, rest
