"""S12: complex numbers, whose real and imaginary parts alternate in memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import opwright

pytestmark = pytest.mark.built_together


@opwright.operator
def turned_and_scaled(z: Tensor, w: Tensor) -> Tensor:
    return z * w.conj() + z.abs() * torch.exp(w)


@opwright.operator
def turned_in_raw_data(pairs: Tensor) -> Tensor:
    real, imaginary = pairs.unbind(-1)
    return torch.stack((real * real - imaginary * imaginary, 2 * real * imaginary), dim=-1)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_values_and_conjugate_gradients_are_those_of_torch(dtype: torch.dtype) -> None:
    z, w = (torch.randn(3, 4, dtype=dtype, requires_grad=True) for _ in range(2))
    ours, right = turned_and_scaled(z, w), turned_and_scaled.reference(z, w)
    assert turned_and_scaled.last_rung == "cpp"
    torch.testing.assert_close(ours, right)
    cotangent = torch.randn(4, 3, dtype=dtype).mT
    torch.testing.assert_close(*(torch.autograd.grad(y, (z, w), cotangent) for y in (ours, right)))


def test_derivatives_agree_with_differences() -> None:
    z, w = (torch.randn(2, 3, dtype=torch.complex128, requires_grad=True) for _ in range(2))
    assert gradcheck(turned_and_scaled, (z, w))
    assert gradgradcheck(turned_and_scaled, (z, w))


def test_the_same_memory_as_pairs_of_reals() -> None:
    z = torch.randn(3, 4, dtype=torch.complex128)
    squared = turned_in_raw_data(torch.view_as_real(z))
    assert turned_in_raw_data.last_rung == "cpp"
    torch.testing.assert_close(torch.view_as_complex(squared), z * z)
