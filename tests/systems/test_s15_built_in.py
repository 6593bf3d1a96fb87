"""S15: an operator behaves as a built-in function of torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import opwright

pytestmark = pytest.mark.built_together
Function = Callable[[Tensor], Tensor]


@opwright.operator
def ripple(x: Tensor) -> Tensor:
    return torch.sin(x) * x


def leaf(size: int = 4) -> Tensor:
    return torch.linspace(-1, 2, size, dtype=torch.float64, requires_grad=True)


def leaves_and_results(function: Function) -> Any:
    x = leaf()
    middle = x * 3
    middle.retain_grad()
    y = function(middle)
    y.retain_grad()
    y.square().sum().backward()
    return x.is_leaf, y.is_leaf, x.grad, middle.grad, y.grad


def without_gradients(function: Function) -> Any:
    x = leaf()
    with torch.no_grad():
        silent = function(x)
    detached = function(x).detach()
    (function(x) * detached + function(x.detach())).sum().backward()
    return silent.requires_grad, detached.requires_grad, x.grad


def accumulated_over_two_calls(function: Function) -> Any:
    x = leaf()
    for _ in range(2):
        function(x).sum().backward()
    return x.grad


def over_a_retained_graph(function: Function) -> Any:
    x = leaf()
    y = function(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    return x.grad


def vector_jacobian_product(function: Function) -> Any:
    x = leaf()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        function(x).backward()
    function(x).backward(torch.tensor([0.1, 1.0, 0.0, -2.0], dtype=torch.float64))
    return x.grad


def sizes_that_vary(function: Function) -> Any:
    found = []
    for size in (2, 7, 1, 300):
        x = leaf(size)
        function(x).sum().backward()
        found.append(x.grad)
    return found


SCENARIOS = (
    leaves_and_results, without_gradients, accumulated_over_two_calls, over_a_retained_graph,
    vector_jacobian_product, sizes_that_vary,
)  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_as_a_built_in(scenario: Callable[[Function], Any]) -> None:
    torch.testing.assert_close(scenario(ripple), scenario(ripple.reference))
    assert ripple.last_rung == "cpp"
