"""Names of parameters and variables become names that Programs can have, each its own."""

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.ir.names.identifiers import ascii_spelling, identifiers

NAMES = ["x", "_", "__", "_a", "__a", "a_given", "double", "saved_1", "sizes", "x_size_0", "β", "beta", "Σ", "é", "変"]


def test_each_is_an_identifier_and_its_own():
    spelled = identifiers(NAMES)
    assert all(name.isascii() and name.isidentifier() for name in spelled)
    assert len({*spelled}) == len(NAMES)
    kept = [name for name in NAMES if name.isascii() and not name.startswith("_")]
    assert [spelled[NAMES.index(name)] for name in kept] == kept
    assert spelled[NAMES.index("β")] == "beta_1"


@pytest.mark.parametrize(("name", "spelled"), [("β", "beta"), ("Δx", "Deltax"), ("é", "e"), ("変", "u5909")])
def test_other_letters(name, spelled):
    assert ascii_spelling(name) == spelled


def without_a_name(x: Tensor) -> Tensor:
    y, _ = x.sort(-1)
    _ = _ * 2
    return y + _ * x


def of_no_name(_: Tensor, __: Tensor, _x: Tensor, __x: Tensor) -> Tensor:
    return _ * 2 + __ * 3 + _x * 5 - __x


def of_greek_names(α: Tensor, β: Tensor, beta: Tensor) -> Tensor:
    Σ = α + β  # noqa: N806
    return Σ * beta


def größe(Ellipsis: Tensor, NoneType: Tensor) -> Tensor:  # noqa: N803
    """Words of schemas, which kernels are registered with."""
    return Ellipsis * NoneType


FUNCTIONS = [(without_a_name, 1), (of_no_name, 4), (of_greek_names, 3), (größe, 2)]


@pytest.mark.parametrize(("function", "count"), FUNCTIONS)
def test_what_has_no_name_in_a_source(function, count):
    operator = Operator(function)
    given = [torch.arange(6.0) + argument for argument in range(count)]
    torch.testing.assert_close(operator(*given), function(*given))
    assert operator.last_rung == "cpp"
