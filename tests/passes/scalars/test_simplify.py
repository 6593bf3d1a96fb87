from __future__ import annotations

import pytest

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Cast, Expression, Literal, apply
from opwright.passes.scalars.simplify import simplify
from tests.ir.programs import F32
from tests.passes.kernels import X, kernel, statements

ONE, ZERO = Literal(1.0, F32), Literal(0.0, F32)

CASES = {
    "times one": (apply("multiply", apply("multiply", X, ONE), Literal(2.0, F32)), "x[i0, i1] * 2.0"),
    "one times": (apply("multiply", ONE, X), "x[i0, i1]"),
    "divided by one": (apply("divide", X, ONE), "x[i0, i1]"),
    "one divided stays": (apply("divide", ONE, X), "1.0 / x[i0, i1]"),
    "negated twice": (apply("negate", apply("negate", X)), "x[i0, i1]"),
    "negated three times": (apply("negate", apply("negate", apply("negate", X))), "-x[i0, i1]"),
    "a literal of another dtype": (apply("add", X, Cast(Literal(2, DType.INT64), F32)), "x[i0, i1] + 2.0"),
    "adding zero stays: it turns -0 into 0": (apply("add", X, ZERO), "x[i0, i1] + 0.0"),
    "times zero stays: of infinity it is NaN": (apply("multiply", X, ZERO), "x[i0, i1] * 0.0"),
    "equal to itself": (apply("equal", X, X), "!is_nan(x[i0, i1])"),
    "unlike itself": (apply("not_equal", X, X), "is_nan(x[i0, i1])"),
    "at most itself": (apply("less_equal", X, X), "!is_nan(x[i0, i1])"),
    "less than itself": (apply("less", X, X), "False"),
    "an integer like itself": (apply("equal", Cast(X, DType.INT64), Cast(X, DType.INT64)), "True"),
    "equal to another": (apply("equal", X, apply("negate", X)), "x[i0, i1] == -x[i0, i1]"),
    "minus itself stays": (apply("subtract", X, X), "x[i0, i1] - x[i0, i1]"),
}


@pytest.mark.parametrize(("value", "expected"), CASES.values(), ids=CASES)
def test_simplify(value: Expression, expected: str) -> None:
    assert statements(simplify(kernel(value))) == [f"y[i0, i1] = {expected}"]
