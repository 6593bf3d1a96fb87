"""Functions that call `.backward()` accumulate gradients at each call; those that call `grad` have kernels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import opwright

pytestmark = pytest.mark.falls_back

OUTSIDE = torch.ones(3, requires_grad=True)


@opwright.operator
def backward_to_outside(x: Tensor) -> Tensor:
    loss = (x * OUTSIDE).sum()
    loss.backward()
    return loss.detach()


@opwright.operator
def backward_to_argument(x: Tensor, w: Tensor) -> Tensor:
    loss = (x * w).sum()
    torch.autograd.backward(loss, torch.ones_like(loss))
    return loss.detach()


@opwright.operator
def gradient_of_outside(x: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad((x * OUTSIDE * OUTSIDE).sum(), OUTSIDE)
    return gradient * 2


class Stepping(nn.Module):
    """It differentiates in its forward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        loss = self.linear(x).square().sum()
        loss.backward()
        return loss.detach()


def test_leaves_from_outside_get_their_gradients() -> None:
    OUTSIDE.grad = None
    for _ in range(3):
        backward_to_outside(torch.ones(3))
    assert OUTSIDE.grad is not None
    assert OUTSIDE.grad.tolist() == [3.0, 3.0, 3.0]


def test_arguments_get_their_gradients() -> None:
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        backward_to_argument(torch.ones(3), w)
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 3.0, 3.0]


def test_parameters_get_their_gradients() -> None:
    torch.manual_seed(0)
    written, x = Stepping(), torch.randn(2, 3)
    plain = Stepping()
    plain.load_state_dict(written.state_dict())
    served = opwright.module(written)
    for _ in range(3):
        torch.testing.assert_close(served(x), plain(x))
    torch.testing.assert_close(served.linear.weight.grad, plain.linear.weight.grad)


def test_gradients_as_values_have_kernels() -> None:
    OUTSIDE.grad = None
    found = gradient_of_outside(torch.arange(3.0))
    assert gradient_of_outside.last_rung == "cpp"
    torch.testing.assert_close(found, 4 * torch.arange(3.0))
    assert OUTSIDE.grad is None
