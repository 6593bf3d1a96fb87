"""Tangents at the points where formulas of forward mode and of reverse mode differ: those that PyTorch gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional

from opwright.api.operator import Operator
from tests.suite.nights import mostly_at_night

Function = Callable[..., Tensor]


def values(*numbers: complex) -> Tensor:
    return torch.tensor(numbers)


CASES: dict[str, tuple[Function, tuple[Tensor, ...]]] = {
    "padding": (lambda w: functional.embedding(torch.arange(2), w, padding_idx=0), (torch.ones(3, 2),)),
    "polar": (torch.polar, (values(0, 1.0), values(1.0, 2))),
    "sinc": (torch.sinc, (values(0, 0.5),)),
    "logit": (lambda x: torch.logit(x, 0.1), (values(0, 0.05, 0.5),)),
    "power": (lambda x, y: x**y, (values(0, 0, 0.5), values(0, 1.0, 2))),
    "angle": (torch.angle, (values(0, 1j, 1),)),
    "sign": (torch.sgn, (values(0, 1j, 1),)),
    "fmax": (torch.fmax, (values(0, 1.0), values(0, 2.0))),
    "atan2": (torch.atan2, (values(0, 0.0), values(0, 1.0))),
    "xlogy": (torch.xlogy, (values(-1.0, 0), values(-1.0, 0))),
    "cumulative product": (lambda x: x.cumprod(0), (values(0, 0, 1.0),)),
}
SECOND: dict[str, tuple[Function, tuple[Tensor, ...]]] = {
    "logarithm of a determinant": (lambda x: torch.linalg.slogdet(x)[1], (torch.eye(3) + 0.3,)),
    "equations": (torch.linalg.solve, (torch.eye(3) + 0.3, torch.ones(3, 2))),
    "cumulative product": (lambda x: x.cumprod(0), (values(0.5, 0, 1.0),)),
    "reflections": (torch.linalg.householder_product, (torch.eye(3) + 0.3, values(0.5, 0.2, 0.3))),
    "inverse of a factor": (torch.cholesky_inverse, ((torch.eye(3) + 0.3).tril(),)),
}


INFINITE = values(1, torch.inf, -torch.inf, torch.nan, 0, -2.0)
FINITE = values(0, 2, -0.0, 1, torch.inf, torch.nan)
ONE_MOVES: dict[str, Function] = {
    "difference": lambda x, y: x - 2 * y,
    "product": lambda x, y: (2 * x + 1) * y,
    "quotient": lambda x, y: x / y + y / x,
    "joined": lambda x, y: torch.cat([x, y]) * 2,
    "matrices": lambda x, y: x.reshape(2, 3) @ y.reshape(3, 2),
    "power": lambda x, y: x.abs() ** y,
    "sum of products": lambda x, y: (x * y).cumsum(0),
    "cross product": lambda x, y: torch.linalg.cross(x.reshape(2, 3), y.reshape(2, 3)),
}


def in_a_level(function: Function, given: Sequence[Tensor], tangents: Sequence[Tensor]) -> Any:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(*map(forward_ad.make_dual, given, tangents))).tangent


def by_transform(function: Function, given: Sequence[Tensor], tangents: Sequence[Tensor]) -> Any:
    return torch.func.jvp(function, tuple(given), tuple(tangents))[1]


@pytest.mark.parametrize("case", mostly_at_night(CASES, ("padding", "sinc", "fmax")))
@pytest.mark.parametrize("tangent", [in_a_level, by_transform])
def test_tangents(tangent: Callable[..., Any], case: str) -> None:
    function, given = CASES[case]
    operator = Operator(function, name=f"tests::formula_{list(CASES).index(case)}_{tangent.__name__}")
    tangents = tuple(torch.linspace(0.4, 0.9, each.numel()).view(each.shape).to(each.dtype) for each in given)
    expected = tangent(function, given, tangents)
    for _ in range(2):
        torch.testing.assert_close(tangent(operator, given, tangents), expected, equal_nan=True)


@pytest.mark.parametrize("case", mostly_at_night(ONE_MOVES, ("difference", "product")))
@pytest.mark.parametrize("moves", [0, 1])
def test_tangents_where_one_argument_moves(moves: int, case: str) -> None:
    """A product of an infinity and of the tangent of what does not move is zero, and not NaN."""
    function = ONE_MOVES[case]
    operator = Operator(function, name=f"tests::one_moves_{list(ONE_MOVES).index(case)}_{moves}")

    def moved(function: Function) -> Any:
        def of_one(value: Tensor) -> Tensor:
            return function(value, FINITE) if moves == 0 else function(INFINITE, value)

        return by_transform(of_one, [(INFINITE, FINITE)[moves]], [torch.linspace(0.5, 1.5, 6)])

    torch.testing.assert_close(moved(operator), moved(function), equal_nan=True)


@pytest.mark.parametrize("case", mostly_at_night(SECOND, ("logarithm of a determinant", "cumulative product")))
def test_second_derivatives_by_forward_mode(case: str) -> None:
    """Against reverse mode twice: PyTorch's own by forward mode are wrong."""
    function, given = SECOND[case]
    values = tuple(each.double() for each in given)
    tangents = tuple(torch.full_like(each, 0.5).tril() if each.dim() > 1 else each * 0 + 0.5 for each in values)
    every = tuple(range(len(values)))
    operator = Operator(function, name=f"tests::second_formula_{list(SECOND).index(case)}")

    def along(function: Function) -> Function:
        return lambda *values: torch.func.jvp(function, values, tangents)[1]

    def sum_along(*values: Tensor) -> Tensor:
        gradients = torch.func.grad(lambda *given: function(*given).sum(), every)(*values)
        return sum((gradient * tangent).sum() for gradient, tangent in zip(gradients, tangents, strict=True))

    expected = torch.func.grad(sum_along, every)(*values)
    found = torch.func.grad(lambda *values: along(operator)(*values).sum(), every)(*values)
    torch.testing.assert_close(found, expected)
    twice = along(along(operator))(*values).sum()
    torch.testing.assert_close(
        twice, sum((gradient * tangent).sum() for gradient, tangent in zip(expected, tangents, strict=True))
    )
