"""S08: a convolution whose gradients are written as convolutions."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tests.systems.by_hand import by_hand


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((2, 3, 6, 5), (4, 3, 3, 2)))


def test_by_hand_it_is_differentiable_once() -> None:
    convolution = by_hand("conv_bn", "Conv2d").apply
    assert gradcheck(convolution, arguments(), fast_mode=True)
    x, weight = arguments()
    (gradient,) = torch.autograd.grad(convolution(x, weight).square().sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with @once_differentiable"):
        gradient.sum().backward()


def test_derived_it_is_differentiable_twice() -> None:
    conv2d, given = by_hand("conv_bn", "conv2d"), arguments()
    assert gradcheck(conv2d.on("cpp"), given, fast_mode=True)
    assert gradgradcheck(conv2d.on("cpp"), given, fast_mode=True)
    torch.testing.assert_close(conv2d.on("cpp")(*given), by_hand("conv_bn", "Conv2d").apply(*given))
