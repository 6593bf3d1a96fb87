"""Kernels whose rows were short in the trace are marked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from opwright.ir.contents import kernels
from opwright.passes.order import optimize
from tests.passes.programs import lowered_from


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def shares(x: Tensor) -> Tensor:
    return x / x.sum((-2, -1), keepdim=True)


@pytest.mark.parametrize(
    ("reference", "shape", "dtype", "marked"),
    [
        (softmax, (40, 9), torch.float32, [True]),
        (softmax, (40, 40), torch.float32, [True]),
        (softmax, (40, 41), torch.float32, [False]),
        (softmax, (40, 16), torch.float64, [False]),
        (shares, (40, 4, 9), torch.float32, [True]),
        (shares, (40, 5, 9), torch.float32, [False]),
        (shares, (40, 4, 9), torch.complex64, [False]),
        (torch.sum, (40,), torch.float32, [False]),
        (torch.tanh, (40, 16), torch.float32, [False]),
    ],
)
def test_rows_of_nine_to_forty_elements(
    reference: Callable[[Tensor], Tensor], shape: tuple[int, ...], dtype: torch.dtype, marked: list[bool]
) -> None:
    met = {f"x_size_{axis}": size for axis, size in enumerate(shape)}
    program = optimize(lowered_from(reference, torch.zeros(shape, dtype=dtype)), "cpp", met)
    assert [kernel.short_rows for kernel in kernels(program)] == marked
