from __future__ import annotations

import pytest

from opwright.ir.expressions.expression import Expression, apply
from opwright.ir.program import Kernel
from opwright.passes.scalars.share import count_uses, share
from tests.passes.kernels import X, kernel, local, statements

EXP = apply("exp", X)

CASES: dict[str, tuple[dict[str, Expression], Expression, list[str]]] = {
    "two lets": (
        {"a": EXP, "b": EXP},
        apply("add", local("a"), local("b")),
        ["let a = exp(x[i0, i1])", "y[i0, i1] = a + a"],
    ),
    "a let and a store": ({"a": EXP}, apply("tanh", EXP), ["let a = exp(x[i0, i1])", "y[i0, i1] = tanh(a)"]),
    "through equal operands": (
        {"a": EXP, "b": EXP, "c": apply("sin", local("a")), "d": apply("sin", local("b"))},
        apply("add", local("c"), local("d")),
        ["let a = exp(x[i0, i1])", "let c = sin(a)", "y[i0, i1] = c + c"],
    ),
    "the other order is another value": (
        {"a": EXP, "b": apply("subtract", X, local("a"))},
        apply("subtract", local("a"), X),
        ["let a = exp(x[i0, i1])", "let b = x[i0, i1] - a", "y[i0, i1] = a - x[i0, i1]"],
    ),
}


@pytest.mark.parametrize(("lets", "value", "expected"), CASES.values(), ids=CASES)
def test_share(lets: dict[str, Expression], value: Expression, expected: list[str]) -> None:
    assert statements(share(kernel(value, lets))) == expected


def test_count_uses() -> None:
    program = kernel(apply("add", local("a"), local("b")), {"a": EXP, "b": apply("exp", local("a")), "c": EXP})
    (step,) = program.steps
    assert isinstance(step, Kernel)
    assert count_uses(step) == {"a": 2, "b": 1}
