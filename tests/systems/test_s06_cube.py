"""S06: x³ with a saved intermediate: by hand its second derivative is easily, and silently, wrong."""

from __future__ import annotations

import torch
from torch.autograd import gradcheck, gradgradcheck

from tests.systems.by_hand import by_hand


def test_the_second_derivative_is_six_x() -> None:
    cube = by_hand("elementwise", "cube").on("cpp")
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(cube(x).sum(), x, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), x)
    torch.testing.assert_close(slope, 3 * x * x)
    torch.testing.assert_close(bend, 6 * x)
    assert gradcheck(cube, (x,))
    assert gradgradcheck(cube, (x,))


def test_the_intermediate_is_saved_only_for_a_backward_pass() -> None:
    cube = by_hand("elementwise", "cube").on("cpp")
    x = torch.randn(5)
    assert not cube(x).requires_grad
    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        cube(x.requires_grad_())
    assert any(torch.equal(tensor, (3 * x * x).detach()) for tensor in kept)
