"""Every row of the translation of torch's symbolic sizes."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Max, Min, Mod, PythonMod

from opwright.errors import NoKernel
from opwright.ir.expressions.integer import evaluate, holds, symbol
from opwright.tracing.scalars.sizes import SizeTable
from opwright.tracing.torch_hooks.fake_mode import fake_mode, with_more_formulas_if_needed

A, B = sympy.Symbol("s0", integer=True, positive=True), sympy.Symbol("s1", integer=True, positive=True)


@pytest.fixture
def table() -> SizeTable:
    _, environment = with_more_formulas_if_needed(fake_mode)
    return SizeTable(environment, {A: symbol("a"), B: symbol("b")}, {"a": 7, "b": 3})


EXPRESSIONS = {
    "symbol": (A, 7),
    "number": (sympy.Integer(-4), -4),
    "sum": (A + 2 * B - 1, 12),
    "product": (A * B * 2, 42),
    "power": (A**2, 49),
    "floor division": (FloorDiv(A, B), 2),
    "clean division": (CleanDiv(A * B, B), 7),
    "modulus": (Mod(A, B), 1),
    "python's modulus": (PythonMod(A - 9, B), 1),
    "maximum": (Max(A, B, 5), 7),
    "minimum": (Min(A, B, 5), 3),
}


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_translate(expression: sympy.Expr, value: int, table: SizeTable) -> None:
    assert evaluate(table.translate(expression), table.hints) == value


@pytest.mark.parametrize("expression", [A ** sympy.Rational(1, 2), sympy.sin(A), A**-1])
def test_what_kernels_do_not_know(expression: sympy.Expr, table: SizeTable) -> None:
    with pytest.raises(NoKernel, match="which kernels do not know"):
        table.translate(expression)


CONDITIONS = {
    "equality": (sympy.Eq(A, B + 4), {"a": 7, "b": 4}),
    "inequality": (sympy.Ne(A, B), {"a": 4, "b": 4}),
    "less": (B < A, {"a": 3, "b": 3}),
    "at least": (A >= B, {"a": 2, "b": 3}),
    "both": (sympy.And(B < A, sympy.Ne(A, 9)), {"a": 9, "b": 3}),
    "the one that holds": (sympy.Or(sympy.Eq(A, B), sympy.Eq(A, 7)), {"a": 3, "b": 3}),
    "neither": (sympy.Not(sympy.Or(sympy.Eq(A, 9), sympy.Eq(B, 9))), {"a": 9, "b": 3}),
}


@pytest.mark.parametrize(("expression", "others"), CONDITIONS.values(), ids=CONDITIONS)
def test_conditions(expression: sympy.Expr, others: dict[str, int], table: SizeTable) -> None:
    conditions = table._conditions(expression)
    assert all(holds(condition, table.hints) for condition in conditions)
    assert not all(holds(condition, others) for condition in conditions)


def test_a_size_of_one_gets_no_symbol(table: SizeTable) -> None:
    rows, one = table.new_shape("x", (5, 1))
    assert str(table.integer(rows)) == "x_size_0"
    assert one == 1
