"""S05: y = c·x for a Python number c."""

from __future__ import annotations

import pytest
import torch

from tests.systems.by_hand import by_hand, written


@pytest.fixture(params=["function", "cpp"])
def mul_constant(request: pytest.FixtureRequest):
    return by_hand("elementwise", "mul_constant").on(request.param)


def test_both_rungs_are_written() -> None:
    assert written(by_hand("elementwise", "mul_constant")) == {"function", "cpp"}


def test_the_number_gets_no_gradient(mul_constant) -> None:
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(mul_constant, (x, 2.5))
    y = mul_constant(x, 2.5)  # held, since the node of a custom function of PyTorch 2.11 ends with it
    assert len([node for node, _ in y.grad_fn.next_functions if node]) == 1


def test_a_gradient_that_is_none_stays_none(mul_constant) -> None:
    x = torch.randn(3, 4, requires_grad=True)
    y = mul_constant(x, 2.5)

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y):
            return y.clone()

        @staticmethod
        def backward(ctx, grad):
            return None

    Nothing.apply(y).sum().backward()
    assert x.grad is None
