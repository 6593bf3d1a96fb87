"""Gradients by the reference are right in the states of torch that record nothing by themselves."""

import contextlib

import pytest
import torch

from opwright.deployment.wheels.runtime.gradients import gradients_by_reference


def product(x, y):
    return x * torch.sin(y), x.detach()


STATES = {
    "ordinary": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "below autograd": torch._C._AutoDispatchBelowAutograd,
}


@pytest.mark.parametrize("state", STATES)
def test_they_are_never_silent_zeros(state):
    with STATES[state]():
        x, y = torch.randn(3), torch.randn(3)
        found = gradients_by_reference(product, [x, y], [0], [torch.full((3,), 2.0)], [0, 1])
    torch.testing.assert_close(tuple(f.clone() for f in found), (2 * torch.sin(y), 2 * x * torch.cos(y)))


def test_an_output_that_depends_on_nothing_gives_zeros():
    x, y = torch.randn(3), torch.randn(3)
    (found,) = gradients_by_reference(product, [x, y], [1], [torch.ones(3)], [0])
    assert torch.equal(found, torch.zeros(3))


def test_they_can_be_differentiated_again():
    x, y = (
        torch.randn(3, dtype=torch.double, requires_grad=True),
        torch.randn(3, dtype=torch.double, requires_grad=True),
    )
    cotangents = torch.randn(3, dtype=torch.double, requires_grad=True)
    torch.autograd.gradgradcheck(lambda *given: product(*given)[0], (x, y))
    torch.autograd.gradcheck(
        lambda a, b, g: gradients_by_reference(product, [a, b], [0], [g], [0, 1]), (x, y, cotangents)
    )
