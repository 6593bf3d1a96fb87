from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from opwright.passes.loops.fuse import fuse
from tests.passes.programs import lowered_from, steps, text

VECTOR, MATRIX = torch.zeros(6), torch.zeros(4, 6)

CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], str]] = {
    "element-wise through a view": (
        lambda x, y: torch.exp(x)[1:] * y[1:],
        (VECTOR, VECTOR),
        """
        kernel output_0 over i0 < x_size_0 - 1
          new output_0: float32[x_size_0 - 1]
          let x = x[i0 + 1]
          let slice_exp_x = exp(x)
          let slice_y = y[i0 + 1]
          let output_0 = slice_exp_x * slice_y
          output_0[i0] = output_0
        """,
    ),
    "equal axes share one kernel": (
        lambda x: (x + 1, x * 2),
        (VECTOR,),
        """
        kernel output_0 over i0 < x_size_0
          new output_0: float32[x_size_0]
          new output_1: float32[x_size_0]
          let x = x[i0]
          let output_0 = x + 1.0
          let output_1 = x * 2.0
          output_0[i0] = output_0
          output_1[i0] = output_1
        """,
    ),
    "a result of one row is not read again": (
        lambda x: ((made := torch.exp(x)), made * 2),
        (torch.zeros(1, 6),),
        """
        kernel made over i0 < 1, i1 < x_size_1
          new made: float32[1, x_size_1]
          new output_1: float32[1, x_size_1]
          let x = x[0, i1]
          let made = exp(x)
          let output_1 = made * 2.0
          made[i0, i1] = made
          output_1[i0, i1] = output_1
        """,
    ),
    "an operand of a library call stays in memory": (
        lambda x, y: torch.exp(x).mT @ y,
        (MATRIX, MATRIX),
        """
        kernel exp_x over i0 < x_size_0, i1 < x_size_1
          new exp_x: float32[x_size_0, x_size_1]
          let x = x[i0, i1]
          let exp_x = exp(x)
          exp_x[i0, i1] = exp_x
        view permute_exp_x: float32[x_size_1, x_size_0] = exp_x[d1, d0]
        call output_0: float32[x_size_1, y_size_1] = aten::mm(permute_exp_x, y)
        """,
    ),
    "a library call between two kernels keeps them apart": (
        lambda x, y: (x * 2) @ y * 3,
        (torch.zeros(6, 6), torch.zeros(6, 6)),
        """
        kernel mul_x over i0 < x_size_0, i1 < x_size_1
          new mul_x: float32[x_size_0, x_size_1]
          let x = x[i0, i1]
          let mul_x = x * 2.0
          mul_x[i0, i1] = mul_x
        call mm: float32[x_size_0, y_size_1] = aten::mm(mul_x, y)
        kernel output_0 over i0 < x_size_0, i1 < y_size_1
          new output_0: float32[x_size_0, y_size_1]
          let mm = mm[i0, i1]
          let output_0 = mm * 3.0
          output_0[i0, i1] = output_0
        """,
    ),
    "pieces of one buffer": (
        lambda x, y: torch.cat([torch.exp(x), y]),
        (VECTOR, VECTOR),
        """
        kernel output_0 over i0 < x_size_0
          new output_0: float32[x_size_0 + y_size_0]
          let x = x[i0]
          let exp_x = exp(x)
          output_0[i0] = exp_x
        kernel output_0_1 over i0 < y_size_0
          let y = y[i0]
          output_0[i0 + x_size_0] = y
        """,
    ),
    "a size that takes part in arithmetic": (
        lambda x: x / x.shape[0],
        (VECTOR,),
        """
        number size: int64[] = x_size_0
        kernel output_0 over i0 < x_size_0
          new output_0: float32[x_size_0]
          let x = x[i0]
          let size = size[]
          let output_0 = x / float32(size)
          output_0[i0] = output_0
        """,
    ),
}


@pytest.mark.parametrize(("reference", "tensors", "expected"), CASES.values(), ids=CASES)
def test_fuse(reference: Callable[..., Any], tensors: tuple[torch.Tensor, ...], expected: str) -> None:
    assert steps(fuse(lowered_from(reference, *tensors))) == text(expected)
