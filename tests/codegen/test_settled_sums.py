"""Sums of columns beside rows: added up in float for a few rows, and then in double precision."""

import pytest
import torch
from torch.nn import functional

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night


def weighted(x, weight, bias):
    return functional.layer_norm(x, x.shape[-1:]) * weight + bias


def of_sums(x, weight, bias):
    return (x - x.sum(-1, keepdim=True)) * weight * bias


CASES = {
    "rows": ((37, 700), (700,)),
    "a few rows": ((3, 700), (700,)),
    "pieces": ((400, 300), (300,)),
    "columns of two axes": ((9, 3, 200), (3, 200)),
    "columns of two axes in planes": ((9, 1, 3, 200), (1, 3, 200)),
    "lanes, and rows that are left": ((4, 75, 20), (20,)),
}
BY_DAY = ("rows", "pieces", "lanes, and rows that are left")


def gradients(function, shape, of_columns, dtype):
    torch.manual_seed(1)
    x, weight, bias, given = (torch.randn(size) for size in (shape, of_columns, of_columns, shape))
    arguments = [each.to(dtype).requires_grad_() for each in (x, weight, bias)]
    return torch.autograd.grad(function(*arguments), arguments, given.to(dtype))


@pytest.mark.parametrize("case", mostly_at_night(CASES, BY_DAY))
@pytest.mark.parametrize("function", [weighted, of_sums])
def test_sums_are_as_exact_as_those_of_pytorch(function, case):
    shape, of_columns = CASES[case]
    operator = Operator(function, settings=quiet_settings())
    actual = gradients(operator, shape, of_columns, torch.float32)
    expected, exact = (gradients(function, shape, of_columns, dtype) for dtype in (torch.float32, torch.float64))
    for mine, theirs, truth in zip(actual, expected, exact, strict=True):
        error, allowed = (abs(each.double() - truth).max() for each in (mine, theirs))
        assert error <= 2 * allowed + 1e-7 * abs(truth).max()


@pytest.mark.parametrize("name", ["weighted", "of_sums"])
def test_they_are_settled(name):
    operator = Operator(globals()[name], settings=quiet_settings())
    gradients(operator, (37, 700), (700,), torch.float32)
    assert "_settle(" in str(operator.source())
    gradients(operator, (37, 700), (700,), torch.float64)


def test_many_rows_are_added_up_in_double_precision():
    """A sum of ones in float stays where it is from 16,777,216 on."""
    rows, columns = 2**18, 65
    x, weight, bias = (torch.randn(size, requires_grad=True) for size in ((rows, columns), columns, columns))
    given = torch.ones(rows, columns)
    given[0] = 2.0**24
    operator = Operator(weighted, settings=quiet_settings())
    *_, gradient = torch.autograd.grad(operator(x, weight, bias), (x, weight, bias), given)
    torch.testing.assert_close(gradient.double(), given.double().sum(0), rtol=2e-7, atol=0)


def test_ends_of_rows_are_found_in_sums():
    operator = Operator(weighted, settings=quiet_settings())
    x, weight, bias = torch.randn(11, 128), torch.randn(128), torch.randn(128, requires_grad=True)
    given = torch.zeros(11, 128)
    given[3, 0], given[4, 1], given[5, 2], given[6, 2] = float("inf"), float("nan"), float("inf"), -float("inf")
    (gradient,) = torch.autograd.grad(operator(x, weight, bias), bias, given)
    torch.testing.assert_close(gradient, given.sum(0), equal_nan=True)


def test_sums_do_not_depend_on_threads():
    operator, threads = Operator(weighted, settings=quiet_settings()), torch.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(gradients(operator, (400, 300), (300,), torch.float32))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))
