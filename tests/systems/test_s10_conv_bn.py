"""S10: a convolution and a batch norm that keep the input and the weight, and convolve again in the backward pass.

Peak memory and time are measured by `benchmarks/conv_bn.py`.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from tests.kept import kept_bytes
from tests.systems.by_hand import by_hand

pytestmark = pytest.mark.built_together


def arguments() -> tuple[Tensor, Tensor]:
    return tuple(torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((2, 3, 6, 5), (4, 3, 3, 2)))


def unfused(x: Tensor, weight: Tensor) -> Tensor:
    return by_hand("conv_bn", "batch_norm")(by_hand("conv_bn", "conv2d")(x, weight))


def fused() -> dict[str, object]:
    return {"derived": by_hand("conv_bn", "conv_bn").on("cpp"), "by hand": by_hand("conv_bn", "ConvBatchNorm").apply}


@pytest.mark.parametrize("which", ["derived", "by hand"])
def test_results_and_gradients_are_those_of_the_two(which: str) -> None:
    given, function = arguments(), fused()[which]
    torch.testing.assert_close(function(*given), unfused(*given))
    assert gradcheck(function, given, fast_mode=True)
    cotangent = torch.randn_like(function(*given))
    ours, right = (torch.autograd.grad(f(*given), given, cotangent) for f in (function, unfused))
    torch.testing.assert_close(ours, right)


@pytest.mark.nightly
def test_the_derived_pair_is_differentiable_twice() -> None:
    assert gradgradcheck(fused()["derived"], arguments(), fast_mode=True)


@pytest.mark.parametrize("which", ["derived", "by hand"])
def test_one_output_of_the_convolution_is_spared(which: str) -> None:
    given = arguments()
    output = by_hand("conv_bn", "conv2d")(*given)
    kept = kept_bytes(fused()[which], given)
    assert kept == sum(argument.nbytes for argument in given)  # nothing but the arguments
    assert kept <= kept_bytes(unfused, given) - output.nbytes


def test_the_module_spares_it_too() -> None:
    x = torch.randn(2, 3, 6, 5, requires_grad=True)
    module = by_hand("conv_bn", "FusedConvBN")(3, 4, 3)
    assert kept_bytes(module, (x,)) == x.nbytes + module.weight.nbytes
