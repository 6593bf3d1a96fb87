"""S03: eˣ, whose backward pass reuses the result."""

from __future__ import annotations

import torch
from torch.autograd import gradcheck, gradgradcheck

from tests.systems.by_hand import by_hand, written


def test_first_and_second_derivative() -> None:
    exp = by_hand("elementwise", "exp")
    assert written(exp) == {"cpp"}
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(exp.on("cpp"), (x,))
    assert gradgradcheck(exp.on("cpp"), (x,))
    assert exp.last_rung == "cpp"


def test_the_result_is_what_backward_reads() -> None:
    kept: list[torch.Tensor] = []
    x = torch.randn(3, 4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        y = by_hand("elementwise", "exp").on("cpp")(x)
    assert any(torch.equal(tensor, y) for tensor in kept)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], y)
