"""Names of parameters and variables become names that kernels can use, each its own."""

import pytest
import torch
from torch import Tensor

from opwright.ir.identifiers import identifiers, is_free
from opwright.operator import Operator

NAMES = ["x", "_", "__", "_a", "__a", "a_given", "double", "double_given", "saved_1", "sizes", "M_PI", "x_size_0"]


def test_each_is_free_and_its_own():
    spelled = identifiers(NAMES)
    assert all(map(is_free, spelled))
    assert len({*spelled}) == len(NAMES)
    kept = ("x", "a_given", "double_given")
    assert [spelled[NAMES.index(name)] for name in kept] == [*kept]


def without_a_name(x: Tensor) -> Tensor:
    y, _ = x.sort(-1)
    _ = _ * 2
    return y + _ * x


def of_no_name(_: Tensor, __: Tensor, _x: Tensor, __x: Tensor) -> Tensor:
    return _ * 2 + __ * 3 + _x * 5 - __x


@pytest.mark.parametrize(("function", "count"), [(without_a_name, 1), (of_no_name, 4)])
def test_what_is_called_by_an_underscore(function, count):
    operator = Operator(function)
    given = [torch.arange(6.0) + argument for argument in range(count)]
    torch.testing.assert_close(operator(*given), function(*given))
    assert operator.last_rung == "cpp"
