"""Floats that change from call to call: one kernel for all values, or one for each where a value is needed."""

import math

import pytest
import torch
from torch import Tensor

import opwright
from tests.operator.against_eager import assert_as_eager, random, variants
from tests.suite.nights import mostly_at_night


def descended(p: Tensor, g: Tensor, rate: float) -> Tensor:
    return p.add(g * g, alpha=-rate) + g * (1 - rate * 0.5) * torch.tanh(p * rate)


def test_a_thousand_values_have_two_kernels():
    operator = opwright.operator(descended)
    p, g = random(5, gradient=False), random(5, seed=1, gradient=False)
    for number in range(1000):
        rate = 0.001 * (number + 0.5)
        torch.testing.assert_close(operator(p, g, rate), descended(p, g, rate))
        assert operator.last_rung == "cpp"
    assert variants(operator) == 2


def test_gradients_of_both_orders_take_the_number_of_their_call():
    operator = opwright.operator(descended)
    p, g = random(5), random(5, seed=1)
    for rate in (0.1, 0.25, 1e-9, -3.0):
        assert_as_eager(operator, p, g, rate)
    assert variants(operator) == 2
    late = operator(p, g, 0.3)
    operator(p, g, 0.4)
    (found,) = torch.autograd.grad(late.sum(), p)
    (expected,) = torch.autograd.grad(descended(p, g, 0.3).sum(), p)
    torch.testing.assert_close(found, expected)


def test_a_special_value_does_not_end_it():
    operator = opwright.operator(descended)
    p, g = random(5), random(5, seed=1)
    for rate in (0.1, 0.2, 1.0, -1.0, 0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e30, 0.3):
        assert_as_eager(operator, p, g, rate, order=1)
    before = variants(operator)
    for rate in (0.7, 0.8, 0.9):
        assert_as_eager(operator, p, g, rate, order=1)
    assert variants(operator) == before


def branched(x: Tensor, limit: float) -> Tensor:
    return x * limit if limit > 0.5 else x + limit


def test_a_second_derivative_takes_the_branch_of_its_number():
    @opwright.operator
    def chosen(x: Tensor, limit: float) -> Tensor:
        return x * 2 if limit < 0.5 else x * 3

    for limit in (0.25, 0.75, 1.5):
        assert_as_eager(chosen, random(4), limit)


def squared(x: Tensor, y: float) -> Tensor:
    return x * y**2


def library(x: Tensor, y: float) -> Tensor:
    return torch.cdist(x, x, p=y)


def inverse(x: Tensor, y: float) -> Tensor:
    return x * (1 / y)


def square_root(x: Tensor, y: float) -> Tensor:
    return x * math.sqrt(abs(y))


def compared(x: Tensor, y: float) -> tuple[Tensor, Tensor, Tensor]:
    return x > y, x * y, torch.where(x > 0, x, y)


def raised(x: Tensor, y: float) -> Tensor:
    return x.abs() ** y


def returned(x: Tensor, y: float):
    return x * 2, y


def helper(y: float) -> float:
    return 2.0 if type(y) is float else 3.0


def typed(x: Tensor, y: float) -> Tensor:
    return x * y if isinstance(y, float) else x + y


def typed_elsewhere(x: Tensor, y: float) -> Tensor:
    return x * y * helper(y)


def as_text(x: Tensor, y: float) -> Tensor:
    return x * y * len(str(y))


VALUES = (0.75, 1.5, 0.25, -2.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("reference", "most"),
    mostly_at_night(
        [
            (branched, 4),
            (compared, 2),
            (raised, 9),
            (typed, 9),
            (inverse, 9),
            (as_text, 9),
            (squared, 4),
            (square_root, 9),
            (returned, 9),
            (typed_elsewhere, 9),
        ],
        by_day=3,
    ),
)
def test_every_value_is_right(reference, most):
    operator = opwright.operator(reference)
    for value in VALUES:
        if reference is inverse and value == 0:
            with pytest.raises(ZeroDivisionError):
                operator(random(4), value)
            continue
        with torch.no_grad():
            torch.testing.assert_close(operator(random(4), value), reference(random(4), value))
        assert operator.last_rung == "cpp"
    assert variants(operator) <= most


SHAPES_AND_DTYPES = [
    *(((), dtype) for dtype in (torch.int64, torch.bool, torch.float32, torch.int32, torch.float64)),
    *(((4,), dtype) for dtype in (torch.int64, torch.bool, torch.float32, torch.int32, torch.float64)),
]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    mostly_at_night(SHAPES_AND_DTYPES, [*SHAPES_AND_DTYPES[:3], ((4,), torch.int32), ((4,), torch.float64)]),
)
def test_a_number_promotes_as_python_floats_do(dtype, shape):
    operator = opwright.operator(compared)
    for value in VALUES[:4]:
        x = (random(*shape, gradient=False) * 4).to(dtype)
        torch.testing.assert_close(operator(x, value), compared(x, value))


def test_a_number_is_as_precise_as_a_constant():
    operator = opwright.operator(squared)
    x = random(100, dtype=torch.float64, gradient=False)
    for value in (0.1, 1 / 3, 0.7):
        torch.testing.assert_close(operator(x, value), x * (value * value), rtol=3e-16, atol=0)


@pytest.mark.falls_back
def test_constants_that_need_a_kernel_each_come_to_an_end(told, monkeypatch):
    @opwright.operator
    def powered(x: Tensor, exponent: int) -> Tensor:
        return x.cumsum(0) * len(range(exponent))

    monkeypatch.setattr("opwright.binding.variants.variants._MOST_VARIANTS", 3)
    for exponent in range(5):
        torch.testing.assert_close(powered(random(3), exponent), random(3).cumsum(0) * exponent)
    assert variants(powered) == 3
    assert "it has kernels for 3 combinations of constants already" in told()[0]


def test_types_are_asked_for_inside_of_wrappers_too():
    @opwright.operator
    def listed(parts: list[Tensor], *, y: float) -> Tensor:
        return parts[0] * y * helper(y)

    @opwright.operator(mutates=("x",))
    def changed(x: Tensor, y: float) -> Tensor:
        return x.mul_(y * helper(y))

    for value in (0.5, 0.25, 3.0):
        torch.testing.assert_close(listed([random(3)], y=value), random(3) * value * 2)
        torch.testing.assert_close(changed(random(3, gradient=False), value), random(3, gradient=False) * value * 2)
        assert listed.last_rung == changed.last_rung == "cpp"
