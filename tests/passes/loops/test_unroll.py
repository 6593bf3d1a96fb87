"""Short innermost axes of constant extent are written out, where that makes the innermost loop longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from opwright.passes.loops.unroll import unroll
from tests.passes.programs import lowered_from, steps, text

Function = Callable[..., Any]
VECTOR, MATRIX = torch.zeros(6), torch.zeros(5, 7)


UNROLLED: dict[str, tuple[Function, tuple[torch.Tensor, ...], str]] = {
    "a reduction becomes arithmetic, which adds to zero as a reduction does": (
        lambda x, y: (x[:, :2] * y[:, :2]).sum(-1),
        (torch.zeros(5, 7), torch.zeros(5, 7)),
        """
        kernel output_0 over i0 < x_size_0
          new output_0: float32[x_size_0]
          output_0[i0] = 0.0 + mul[i0, 0] + mul[i0, 1]
        """,
    ),
    "what is broadcast along the axis or beside it": (
        lambda x, y: x[:, :2] * y[:, None],
        (torch.zeros(5, 7), VECTOR[:5]),
        """
        kernel output_0 over i0 < x_size_0
          new output_0: float32[x_size_0, 2]
          output_0[i0, 0] = slice_x[i0, 0] * unsqueeze_y[i0, 0]
          output_0[i0, 1] = slice_x[i0, 1] * unsqueeze_y[i0, 0]
        """,
    ),
    "sums of columns become rows": (
        lambda x: x[:, :2].sum(0),
        (torch.zeros(5, 7),),
        """
        kernel output_0 over i0 < x_size_0, rows of i0
          new output_0: float32[2]
          reduce output_0_sum_0 = sum of slice_x[i0, 0]
          reduce output_0_sum_1 = sum of slice_x[i0, 1]
          output_0[0] = output_0_sum_0
          output_0[1] = output_0_sum_1
        """,
    ),
    "what is left is reduced as it lies": (
        lambda x: x[:, :, :2].amax((0, 2)),
        (torch.zeros(5, 6, 7),),
        """
        kernel output_0 over i0 < x_size_0, i1 < x_size_1
          new output_0: float32[x_size_1]
          output_0[i1] = maximum of maximum(slice_x[i0, i1, 0], slice_x[i0, i1, 1])
        """,
    ),
    "a dimension that stays with one element": (
        lambda x: x[:, :2].sum(-1, keepdim=True) * 2,
        (torch.zeros(5, 7),),
        """
        kernel output_0 over i0 < x_size_0
          new output_0: float32[x_size_0, 1]
          output_0[i0, 0] = sum_x[i0, 0] * 2.0
        """,
    ),
    "two axes": (
        lambda x, y: x[:, :2, :2] * y[:, None, None],
        (torch.zeros(5, 7, 7), VECTOR[:5]),
        """
        kernel output_0 over i0 < x_size_0
          new output_0: float32[x_size_0, 2, 2]
          output_0[i0, 0, 0] = slice_x_1[i0, 0, 0] * unsqueeze_y_1[i0, 0, 0]
          output_0[i0, 0, 1] = slice_x_1[i0, 0, 1] * unsqueeze_y_1[i0, 0, 0]
          output_0[i0, 1, 0] = slice_x_1[i0, 1, 0] * unsqueeze_y_1[i0, 0, 0]
          output_0[i0, 1, 1] = slice_x_1[i0, 1, 1] * unsqueeze_y_1[i0, 0, 0]
        """,
    ),
}
LEFT: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "one long axis in memory": (lambda x: torch.exp(torch.stack([x, x], -1) @ torch.eye(2)), (VECTOR,)),
    "a long axis": (lambda x: x.sum(-1), (torch.zeros(5, 7),)),
    "too many copies": (lambda x, y: x[:, :10] * y[:, None], (torch.zeros(5, 12), VECTOR[:5])),
    "much to compile": (
        lambda x, y: sum(torch.exp(x[:, :4] * k) for k in range(40)) * y[:, None],
        (MATRIX, VECTOR[:5]),
    ),
    "nothing but short axes": (lambda x: x[:2, :2].sum(-1), (torch.zeros(5, 7),)),
}


@pytest.mark.parametrize(("reference", "tensors", "expected"), UNROLLED.values(), ids=UNROLLED)
def test_unrolled(reference: Function, tensors: tuple[torch.Tensor, ...], expected: str) -> None:
    listing = steps(unroll(lowered_from(reference, *tensors)))
    assert listing.endswith(text(expected)), listing


@pytest.mark.parametrize(("reference", "tensors"), LEFT.values(), ids=LEFT)
def test_left(reference: Function, tensors: tuple[torch.Tensor, ...]) -> None:
    program = lowered_from(reference, *tensors)
    assert unroll(program) == program
