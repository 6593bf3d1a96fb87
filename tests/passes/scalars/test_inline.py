from __future__ import annotations

import itertools

import pytest

from opwright.ir.expressions.expression import Expression, Literal, apply
from opwright.passes.scalars.inline import inline
from tests.ir.programs import F32
from tests.passes.kernels import X, kernel, local, statements

LOADED: dict[str, Expression] = {"x": X}


def chain(length: int) -> dict[str, Expression]:
    """Lets that are each used once: s1 = sin(x), s2 = sin(s1), …"""
    names = ["x", *(f"s{number}" for number in range(1, length + 1))]
    return {name: apply("sin", local(before)) for before, name in itertools.pairwise(names)}


CASES: dict[str, tuple[dict[str, Expression], Expression, list[str]]] = {
    "used once": ({"a": apply("exp", local("x"))}, apply("tanh", local("a")), ["y[i0, i1] = tanh(exp(x))"]),
    "used twice": (
        {"a": apply("exp", local("x"))},
        apply("add", local("a"), local("a")),
        ["let a = exp(x)", "y[i0, i1] = a + a"],
    ),
    "spoken": (
        {"cell": apply("exp", local("x"))},
        apply("tanh", local("cell")),
        ["let cell = exp(x)", "y[i0, i1] = tanh(cell)"],
    ),
    "a literal, wherever it is used": (
        {"a": Literal(2.0, F32)},
        apply("multiply", apply("add", local("x"), local("a")), local("a")),
        ["y[i0, i1] = (x + 2.0) * 2.0"],
    ),
    "a long formula": (
        chain(8),
        local("s8"),
        ["let s6 = sin(sin(sin(sin(sin(sin(x))))))", "y[i0, i1] = sin(sin(s6))"],
    ),
}


@pytest.mark.parametrize(("lets", "value", "expected"), CASES.values(), ids=CASES)
def test_inline(lets: dict[str, Expression], value: Expression, expected: list[str]) -> None:
    program = kernel(value, LOADED | lets, spoken="cell")
    assert statements(inline(program)) == ["let x = x[i0, i1]", *expected]
