"""Which numbers are prepared as divisors, and that quotients stay those of a division."""

import pytest
import torch
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.codegen.cpp.loops.divisors import is_divisor, with_divisors
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Literal, Load, Local, apply
from opwright.ir.expressions.integer import symbol
from opwright.ir.program import Axis, Kernel, Let, Reduce, Store
from tests.quiet_settings import quiet_settings

F32, F64 = DType.FLOAT32, DType.FLOAT64
ROW, COLUMN = symbol("i"), symbol("j")
X, TOTAL, WEIGHT = Local("x", F32), Local("total", F32), Local("weight", F32)


def kernel(value, row_axes=1, dtype=F32):
    lets = (
        Let("x", Load("x", (ROW, COLUMN), dtype)),
        Let("weight", Load("weight", (COLUMN,), dtype)),
        Reduce("total", "sum", Local("x", dtype)),
    )
    axes = (Axis("i", symbol("rows")), Axis("j", symbol("columns")))
    return Kernel("divided", (), axes, lets, (Store("out", (ROW, COLUMN), value),), row_axes=row_axes)


def written(value, row_axes=1):
    rewritten = with_divisors(kernel(value, row_axes))
    return {let.name: let.value for let in rewritten.lets if is_divisor(let.value)}, rewritten.stores[0].value


def divisor_of(value):
    return Apply("divisor_of", (value,), F32)


def test_a_number_of_the_row_is_prepared():
    lets, value = written(apply("divide", X, TOTAL))
    assert lets == {"total_divisor": divisor_of(TOTAL)}
    assert value == Apply("divide", (X, Local("total_divisor", F32)), F32)


def test_one_divisor_serves_all_quotients():
    lets, _ = written(apply("add", apply("divide", X, TOTAL), apply("divide", WEIGHT, TOTAL)))
    assert list(lets) == ["total_divisor"]


def test_an_expression_of_the_row_has_a_name():
    root = apply("sqrt", TOTAL)
    assert written(apply("divide", X, root))[0] == {"divisor": divisor_of(root)}


def test_a_constant_is_prepared_by_the_compiler():
    for row_axes in (0, 1):
        assert written(apply("divide", X, Literal(0.7, F32)), row_axes) == (
            {},
            Apply("divide", (X, divisor_of(Literal(0.7, F32))), F32),
        )


@pytest.mark.parametrize(
    "value",
    [
        *(apply("divide", X, Literal(number, F32)) for number in (2.0, -0.125, 1.0, 0.0, float("inf"), float("nan"))),
        apply("divide", X, WEIGHT),
        apply("divide", TOTAL, X),
        apply("divide", TOTAL, TOTAL),
    ],
    ids=repr,
)
def test_other_quotients_stay(value):
    assert written(value) == ({}, value)


def test_numbers_of_rows_that_are_no_reductions_stay_without_rows():
    value = apply("divide", X, Local("total", F32))
    assert written(value, 0) == ({}, value)


def test_a_taken_name_is_not_used_again():
    taken = kernel(apply("divide", X, TOTAL))
    taken = Kernel("divided", (), taken.axes, (Let("total_divisor", TOTAL), *taken.lets), taken.stores, row_axes=1)
    assert [let.name for let in with_divisors(taken).lets if is_divisor(let.value)] == ["total_divisor_1"]


FUNCTIONS = {
    "rows": lambda x: x / x.sum(-1, keepdim=True),
    "temperature": lambda x: torch.softmax(x / 0.7, -1),
    "constants": lambda x: torch.exp(x / 3) / -5,
    "cosines": lambda x: functional.cosine_similarity(x, x.flip(-1), -1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_as_exact_as_before(name):
    x = torch.randn(24, 700, requires_grad=True)
    function, exact = FUNCTIONS[name], x.detach().double().requires_grad_()
    operator = Operator(function, settings=quiet_settings())
    value, truth = operator(x), function(exact)
    assert "divisor_of(" in str(operator.source())
    torch.testing.assert_close(value.double(), truth, rtol=2e-5, atol=1e-6)
    (gradient,), (slope,) = (torch.autograd.grad(v.square().sum(), w) for v, w in ((value, x), (truth, exact)))
    torch.testing.assert_close(gradient.double(), slope, rtol=1e-4, atol=1e-5)


def test_ends_of_rows_are_pytorchs():
    ends = torch.tensor([0.0, -0.0, 1.0, -2.0, float("inf"), -float("inf"), float("nan"), 1e-40, 3e38])
    x = torch.cat([ends, torch.zeros(64 - ends.numel())]).repeat(8, 1)
    x[torch.arange(8), 20] = torch.tensor([0.0, -0.0, 1e-40, -1e30, 3e38, float("inf"), -float("inf"), float("nan")])

    def quotients_in_rows(x):
        return x / x[:, 20:21], x / x[:, :20].amax(-1, keepdim=True)

    for actual, expected in zip(
        Operator(quotients_in_rows, settings=quiet_settings())(x), quotients_in_rows(x), strict=True
    ):
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
        usual = expected == 0
        assert torch.equal(actual[usual].signbit(), expected[usual].signbit())
