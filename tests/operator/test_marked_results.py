"""Functions that mark tensors of their own as requiring gradients: results require them as in eager, and get them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator

pytestmark = pytest.mark.falls_back


def marked(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = (x * w).detach().requires_grad_()
    return y, y * w + x


def marked_by_attribute(x: Tensor, w: Tensor) -> Tensor:
    y = (x * w).detach()
    y.requires_grad = True
    return y * 2


def marked_after_no_grad(x: Tensor, w: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * w
    return torch.sin(y.requires_grad_())


def mixed_with_an_argument(x: Tensor, w: Tensor) -> Tensor:
    return torch.sin(x.detach().requires_grad_() * w)


def made_so(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.ones(3, requires_grad=True)
    return x * w, made * 2


def used_inside(x: Tensor, w: Tensor) -> Tensor:
    y = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad((y.sin() * w).sum(), y, create_graph=True)
    return slope * w


FUNCTIONS = (marked, marked_by_attribute, marked_after_no_grad, mixed_with_an_argument, made_so, used_inside)
WANTED = tuple(itertools.product((True, False), repeat=2))


def outcome(function: Callable[..., Any], wanted: tuple[bool, bool]) -> list[Any]:
    x, w = (torch.linspace(0.5, top, 3).requires_grad_(each) for top, each in zip((2, 3), wanted, strict=True))
    returned = function(x, w)
    results = returned if isinstance(returned, tuple) else (returned,)
    marks = [(each.requires_grad, each.is_leaf, each.grad_fn is None) for each in results]
    if any(each.requires_grad for each in results):
        torch.autograd.backward([each.sum() for each in results if each.requires_grad])
    return [marks, *[each.detach() for each in results], *[each.grad for each in (x, w, *results) if each.is_leaf]]


@pytest.mark.parametrize("order", [WANTED, WANTED[::-1]], ids=["all first", "none first"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_require_gradients_as_in_eager(
    function: Callable[..., Any], order: tuple[tuple[bool, bool], ...]
) -> None:
    operator = Operator(function, name=f"tests::{function.__name__}_{order[0][0]}")
    for wanted in order * 2:
        found, expected = outcome(operator, wanted), outcome(function, wanted)
        assert found[0] == expected[0]
        torch.testing.assert_close(found[1:], expected[1:])


def test_what_is_marked_inside_alone_has_kernels() -> None:
    operator = Operator(used_inside, name="tests::marked_inside_alone")
    for _ in range(2):
        outcome(operator, (True, True))
    assert operator.last_rung == "cpp"
