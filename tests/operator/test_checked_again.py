"""Arguments that a function checks and no gradient reads: they are checked again where gradients are differentiated."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, distributions
from torch.nn import functional

import opwright
from tests.suite.nights import mostly_at_night

D = torch.float64


def scaled(x: Tensor, s: Tensor) -> Tensor:
    if not (s > 0).all():
        raise ValueError(f"scales must be positive, not {s}")
    return x.square() * 2 + s.abs()


def drawn(x: Tensor, s: Tensor) -> Tensor:
    return distributions.Cauchy(x, s).icdf(torch.full_like(x, 0.3)) + x.exp()


def beside_its_root(x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    return x.sin(), torch.linalg.cholesky(s.diag())


def beside_its_inverse(x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    return x.sin(), torch.linalg.inv(s.diag())


def beside_quotients(x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    return x.exp(), torch.full_like(s, 10).long() // s.long()


def beside_classes(x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    return x.exp(), functional.one_hot(s.long() - 1, 4)


def beside_draws(x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    return x.exp(), torch.multinomial(s, 2)


CASES = [scaled, drawn, beside_its_root, beside_its_inverse, beside_quotients, beside_classes, beside_draws]


def first(result: Any) -> Tensor:
    return result[0] if isinstance(result, tuple) else result


def orders(function: Callable[..., Any], x: Tensor, s: Tensor) -> list[Tensor]:
    """The result, and three gradients of it, each of the one before."""
    torch.manual_seed(0)
    found = [first(function(x, s))]
    for weight in (1, 2, 3):
        found += torch.autograd.grad((found[-1] * weight).sin().sum(), x, create_graph=True)
    return found


def assert_as_eager(function: Callable[..., Any], operator: opwright.Operator, run: Callable[..., Any]) -> None:
    expected = run(function)
    for _ in range(3):  # the third call goes by C++
        torch.testing.assert_close(run(operator), expected)


@pytest.mark.parametrize("tape", [None, "off"])
@pytest.mark.parametrize("function", mostly_at_night(CASES, CASES[:3]))
def test_gradients_can_be_differentiated_again(
    function: Callable[..., Any], tape: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tape is not None:
        monkeypatch.setenv("OPWRIGHT_TAPE", tape)
    operator = opwright.operator(function, name=f"tests::{function.__name__}_again_{tape}")
    x, s = torch.tensor([0.3, -0.2, 0.7], dtype=D, requires_grad=True), torch.tensor([1.0, 2.0, 3.0], dtype=D)
    assert_as_eager(function, operator, lambda each: orders(each, x, s))
    assert operator.last_rung == "cpp"


def test_where_they_require_gradients_themselves() -> None:
    def run(each: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        x = torch.tensor([0.3, -0.2], dtype=D, requires_grad=True)
        s = torch.tensor([1.0, 2.0], dtype=D, requires_grad=True)
        gradients = torch.autograd.grad(each(x, s).square().sum(), (x, s), create_graph=True)
        return *gradients, *torch.autograd.grad(sum(g.square().sum() for g in gradients), (x, s))

    assert_as_eager(drawn, opwright.operator(drawn), run)


@pytest.mark.parametrize("create_graph", [False, True])
def test_they_may_be_changed_before_the_backward_pass(create_graph: bool) -> None:
    def of_scales(x: Tensor, s: Tensor) -> Tensor:
        return scaled(x, s) * 3

    def run(each: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        x, s = torch.tensor([0.3, -0.2], dtype=D, requires_grad=True), torch.tensor([1.0, 2.0], dtype=D)
        y = each(x, s)
        s += 1
        return torch.autograd.grad(y.sum(), x, create_graph=create_graph)

    assert_as_eager(of_scales, opwright.operator(of_scales, name=f"tests::of_scales_{create_graph}"), run)


def test_they_live_no_longer_than_the_graph() -> None:
    def of_passing_scales(x: Tensor, s: Tensor) -> Tensor:
        return scaled(x, s) * 5

    operator = opwright.operator(of_passing_scales)
    x = torch.tensor([0.3, -0.2], dtype=D, requires_grad=True)
    for _ in range(3):
        s = torch.tensor([1.0, 2.0], dtype=D)
        alive = weakref.ref(s.untyped_storage())
        y = operator(x, s)
        del s
        y.sum().backward()
        assert alive() is None
