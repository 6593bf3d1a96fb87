"""Simplify scalar arithmetic where the result is the same to the last bit."""

from __future__ import annotations

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, apply, cast, rewrite_children
from opwright.ir.program import Program
from opwright.passes.scalars.rewrite import map_expressions

_OF_ITSELF = {
    "equal": True,
    "less_equal": True,
    "greater_equal": True,
    "not_equal": False,
    "less": False,
    "greater": False,
}
"""What a number is to itself; NaN is unlike itself."""


def simplify(program: Program) -> Program:
    """Drop multiplications and divisions by one, double negation, conversions of literals, and comparisons with itself.

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
        case Apply(function, (x, y)) if function in _OF_ITSELF and x == y and not x.dtype.is_complex:
            return _compared_with_itself(function, x)
        case _:
            return expression


def _compared_with_itself(function: str, x: Expression) -> Expression:
    """Whether it is a number: compilers warn of `x == x`, as it may be a slip of the pen."""
    truth = _OF_ITSELF[function]
    if not x.dtype.is_floating or function in ("less", "greater"):
        return Literal(truth, DType.BOOL)
    is_nan = apply("is_nan", x)
    return apply("logical_not", is_nan) if truth else is_nan
