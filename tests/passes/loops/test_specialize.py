"""Short sizes that a trace met get a case of their own, if it makes loops longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from opwright.ir.printer import print_program
from opwright.ir.verifier import verify
from opwright.passes.loops.specialize import specialize
from opwright.passes.order import optimize
from tests.passes.programs import lowered_from, text

MET = {"x_size_0": 5, "x_size_1": 3, "x_size_2": 2, "y_size_0": 5}


def distances(x: torch.Tensor) -> torch.Tensor:
    gap = x[:, None] - x[None, :]
    return (gap * gap).sum(-1).sqrt()


def test_a_case_beside_the_steps_for_every_size() -> None:
    program = optimize(lowered_from(distances, torch.zeros(5, 3)), met=MET)
    verify(program)
    general, _, case = print_program(program).partition("  case ")
    assert "rows of i2" in general
    assert text(case) == text("""
        x_size_1 = 3
            kernel output_0 over i0 < x_size_0, i1 < x_size_0
              new output_0: float32[x_size_0, x_size_0]
              let unsqueeze_x = x[i0, 0]
              let slice_x = x[i1, 0]
              let gap = unsqueeze_x - slice_x
              let unsqueeze_x_1 = x[i0, 1]
              let slice_x_1 = x[i1, 1]
              let gap_1 = unsqueeze_x_1 - slice_x_1
              let unsqueeze_x_2 = x[i0, 2]
              let slice_x_2 = x[i1, 2]
              let gap_2 = unsqueeze_x_2 - slice_x_2
              let sum_gap = 0.0 + gap * gap + gap_1 * gap_1 + gap_2 * gap_2
              output_0[i0, i1] = sqrt(sum_gap)
        """)


@pytest.mark.parametrize(
    ("reference", "sizes"),
    [
        (distances, {"x_size_1": 3}),
        (lambda x: torch.softmax(x, -1), {"x_size_1": 3}),
        (lambda x: x.sum(0), {"x_size_1": 3}),
        (lambda x: x * 2, {}),  # one long axis in memory
        (lambda x: x.sum(), {}),
    ],
)
def test_sizes_of_cases(reference: Callable[..., Any], sizes: dict[str, int]) -> None:
    program = specialize(lowered_from(reference, torch.zeros(5, 3)), MET)
    assert [dict(case.sizes) for case in program.cases] == ([sizes] if sizes else [])


@pytest.mark.parametrize(
    ("reference", "sizes"),
    [
        (lambda x: torch.softmax(x, -1), {"x_size_1": 8}),
        (lambda x: torch.softmax(x[:, None] * x, -1), {"x_size_1": 8}),
        (lambda x: x * x[:1], {}),  # not reduced
        (lambda x: x / x.sum(0), {}),  # reduced along the other axis
        (lambda x: torch.softmax(x, -1) + x[:, None].sum(0).t(), {}),
    ],
)
def test_rows_that_are_reduced_may_be_longer(reference: Callable[..., Any], sizes: dict[str, int]) -> None:
    program = specialize(lowered_from(reference, torch.zeros(8, 8)), {"x_size_0": 8, "x_size_1": 8})
    assert [dict(case.sizes) for case in program.cases] == ([sizes] if sizes else [])


def test_no_more_sizes_than_needed() -> None:
    program = specialize(lowered_from(lambda x: x / x.sum(-1, keepdim=True), torch.zeros(5, 3, 2)), MET)
    assert [dict(case.sizes) for case in program.cases] == [{"x_size_2": 2}]
