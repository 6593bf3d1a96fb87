"""Simplify scalar arithmetic where the result is the same to the last bit."""

from __future__ import annotations

from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, cast, rewrite_children
from opwright.ir.program import Program
from opwright.passes.scalars.rewrite import map_expressions


def simplify(program: Program) -> Program:
    """Drop multiplications and divisions by one, double negation, and conversions of literals.

    Before: y[i0] = (x[i0] * 1.0) * 2.0      After: y[i0] = x[i0] * 2.0

    Adding zero stays: it turns −0 into 0. So does multiplying complex numbers by one: it makes a NaN of an infinity.
    """
    return map_expressions(program, _simplify)


def _simplify(expression: Expression) -> Expression:
    expression = rewrite_children(expression, _simplify)
    match expression:
        case Apply("multiply" | "divide", dtype=dtype) if dtype.is_complex:
            return expression
        case Apply("multiply", (x, Literal(1))) | Apply("multiply", (Literal(1), x)) | Apply("divide", (x, Literal(1))):
            return x
        case Apply("negate", (Apply("negate", (x,)),)):
            return x
        case Cast(Literal() as literal, dtype):
            return cast(literal, dtype)
        case _:
            return expression
