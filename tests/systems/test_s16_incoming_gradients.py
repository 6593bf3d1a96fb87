"""S16: incoming gradients of any layout."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import opwright

pytestmark = pytest.mark.built_together
SHAPE = (2, 3, 4, 5)


@opwright.operator
def gated_twice(x: Tensor, gate: Tensor) -> Tensor:
    return torch.tanh(x) * torch.sigmoid(gate)


CONSUMERS = {
    "of a sum, with stride 0": lambda y: y.sum(),
    "transposed": lambda y: (y.transpose(1, 3) * weights(2, 5, 4, 3)).sum(),
    "a slice of a cat": lambda y: (torch.cat((weights(2, 3, 4, 2), y), dim=3).square() * weights(2, 3, 4, 7)).sum(),
    "channels last": lambda y: (y * weights(*SHAPE).contiguous(memory_format=torch.channels_last)).sum(),
    "of a mean of rows": lambda y: (y.mean(-1) * weights(2, 3, 4)).sum(),
}


def weights(*sizes: int) -> Tensor:
    return torch.arange(torch.Size(sizes).numel(), dtype=torch.float64).reshape(sizes)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_gradients_are_those_of_the_function(consumer: str, *, create_graph: bool) -> None:
    x = weights(*SHAPE).sub(60).div(40).requires_grad_()
    gate = x.detach().flip(0).requires_grad_()
    found = []
    for function in (gated_twice, gated_twice.reference):
        lost = CONSUMERS[consumer](function(x, gate))
        found.append(torch.autograd.grad(lost, (x, gate), create_graph=create_graph))
    torch.testing.assert_close(*found)
    assert gated_twice.last_rung == "cpp"


def test_a_tensor_that_is_handed_in_itself() -> None:
    x = weights(3, 4).requires_grad_()
    for cotangent in (weights(4, 3).t(), torch.ones(()).double().expand(3, 4), weights(3, 9)[:, 1::2]):
        ours, right = (torch.autograd.grad(f(x, x), x, cotangent) for f in (gated_twice, gated_twice.reference))
        torch.testing.assert_close(ours, right)
