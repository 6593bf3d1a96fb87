"""S09: a batch norm with the unbiased deviation, and its epsilon outside of the root."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tests.systems.by_hand import by_hand

pytestmark = pytest.mark.built_together
AXES = (0, 2, 3)


def argument() -> torch.Tensor:
    return torch.randn(16, 3, 4, 5, dtype=torch.float64, requires_grad=True)


def test_the_formula() -> None:
    x = argument()
    count = 16 * 4 * 5
    mean = x.sum(AXES, keepdim=True) / count
    deviation = ((x - mean).square().sum(AXES, keepdim=True) / (count - 1)).sqrt()
    torch.testing.assert_close(by_hand("conv_bn", "batch_norm")(x), (x - mean) / (deviation + 1e-3))


def test_gradients_by_hand_and_derived() -> None:
    assert gradcheck(by_hand("conv_bn", "BatchNorm").apply, argument(), fast_mode=True)
    assert gradcheck(by_hand("conv_bn", "batch_norm").on("cpp"), argument(), fast_mode=True)
    small = argument()[:2, :, :2, :2].detach().requires_grad_()
    assert gradgradcheck(by_hand("conv_bn", "batch_norm").on("cpp"), small, fast_mode=True)
