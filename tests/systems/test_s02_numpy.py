"""S02: an operator that calls NumPy, among torch operations."""

from __future__ import annotations

import numpy
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import opwright


@opwright.opaque(like=torch.empty_like, backward=lambda gradient, x: smoothed(gradient))  # a symmetric matrix
def smoothed(x: Tensor) -> Tensor:
    waves = numpy.fft.rfft(x.numpy())
    return torch.from_numpy(numpy.fft.irfft(waves / (1 + numpy.arange(waves.shape[-1])), n=x.shape[-1]))


@opwright.opaque(like=torch.empty_like, backward=lambda gradient, x: gradient * torch.from_numpy(numpy.cos(x.numpy())))
def sine_with_a_gradient_in_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(numpy.sin(x.numpy()))


@opwright.operator
def spectral_loss(x: Tensor, scale: Tensor) -> Tensor:
    return (smoothed(torch.sin(x) * scale) ** 3).sum(-1)


@opwright.operator
def of_sine(x: Tensor) -> Tensor:
    return sine_with_a_gradient_in_numpy(2 * x) + x


def test_it_chains_with_torch_operations_to_any_order() -> None:
    x, scale = (torch.randn(2, 8, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(spectral_loss, (x, scale))
    assert gradgradcheck(spectral_loss, (x, scale))
    assert spectral_loss.last_rung == "cpp"


@pytest.mark.falls_back  # kernels cannot be derived from a backward pass that is not made of torch operations
def test_a_second_derivative_that_numpy_hides_is_refused() -> None:
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(of_sine(x).sum(), x)
    torch.testing.assert_close(slope, 2 * torch.cos(2 * x.detach()) + 1)
    with pytest.raises(RuntimeError, match=r"numpy\(\) on Tensor that requires grad"):
        torch.autograd.grad(of_sine(x).sum(), x, create_graph=True)
