"""S14: what a function tells autograd about itself: changed arguments, results and gradients that are not there."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import opwright

pytestmark = pytest.mark.built_together


@opwright.operator(mutates=("x",))
def scaled_where_it_is(x: Tensor, factor: Tensor) -> Tensor:
    return x.mul_(factor).add_(1)


@opwright.operator
def highest(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.exp(x), x.argmax(-1), x > 0


@opwright.operator
def apart(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sin(x), torch.cos(x) * y


@opwright.opaque(like=torch.empty_like)
def slope(x: Tensor) -> Tensor:
    return torch.cos(x)


@opwright.opaque(like=torch.empty_like, backward=lambda gradient, x: gradient * slope(x))
def differentiable_once(x: Tensor) -> Tensor:
    return torch.sin(x)


@opwright.operator
def once(x: Tensor) -> Tensor:
    return differentiable_once(x) * 2


def double(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def test_an_argument_is_changed_in_place() -> None:
    x, factor = double(3, 4), double(4)
    assert gradcheck(lambda x, factor: scaled_where_it_is(x.clone(), factor), (x, factor))
    given = x.detach().clone()
    assert scaled_where_it_is(given, factor.detach()) is given
    assert given._version > 0
    torch.testing.assert_close(given, x * factor + 1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        scaled_where_it_is(x, factor)


def test_integers_and_truth_values_have_no_gradient() -> None:
    x = double(3, 4)
    exponential, place, positive = highest(x)
    assert (exponential.requires_grad, place.requires_grad, positive.requires_grad) == (True, False, False)
    assert gradcheck(lambda x: highest(x)[0], (x,))


def test_what_was_not_asked_for_is_not_there() -> None:
    x, y = double(3), double(3).detach()
    sine, product = apart(x, y)
    (of_x,) = torch.autograd.grad(sine.sum(), x, retain_graph=True)  # the gradient of the product stays None
    torch.testing.assert_close(of_x, torch.cos(x))
    product.sum().backward()
    assert y.grad is None
    assert len([node for node, _ in product.grad_fn.next_functions if node]) == 1  # as needs_input_grad tells


@pytest.mark.falls_back  # torch says what is missing
def test_a_second_derivative_that_is_not_there_raises() -> None:
    x = double(3)
    (first,) = torch.autograd.grad(once(x).sum(), x)
    torch.testing.assert_close(first, 2 * torch.cos(x))
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        torch.autograd.grad(torch.autograd.grad(once(x).sum(), x, create_graph=True)[0].sum(), x)
