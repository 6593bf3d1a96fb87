"""Reductions that say where: values, positions and gradients as in torch, with equals, NaN and infinities."""

from __future__ import annotations

import math

import pytest
import torch

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

Tensors = tuple[torch.Tensor, ...]
LARGE, SMALL = math.inf, -math.inf
ROWS = (
    *((1.0, 3.0, 3.0, 2.0, 1.0), (math.nan, 3.0, 0.0, math.nan, 1.0), (2.0, math.nan, LARGE, SMALL, math.nan)),
    *((LARGE, LARGE, SMALL, SMALL, 0.0), (0.0, -0.0, 0.0, -0.0, -0.0), (SMALL,) * 5, (math.nan,) * 5),
)


def extremes(x: torch.Tensor) -> Tensors:
    maxima, minima, one = x.max(0), x.min(dim=-1, keepdim=True), x[0, 0]
    alone = (x.argmax(-1), x.argmin(0, keepdim=True), x.argmax(), x.argmin(keepdim=True))
    return *maxima, *minima, *alone, *x.aminmax(dim=1), one.argmax(0), *one.max(0)


def largest(x: torch.Tensor) -> torch.Tensor:
    return x.max(1).values


CASES = [(torch.float32, True), (torch.int64, False), (torch.bfloat16, True), (torch.int64, True)]


@pytest.mark.parametrize(("dtype", "optimized"), mostly_at_night(CASES, by_day=(CASES[1],)), ids=str)
def test_positions(dtype: torch.dtype, optimized: bool) -> None:
    operator = Operator(extremes, settings=quiet_settings(optimized=optimized))
    x = torch.tensor(ROWS, dtype=torch.float64)
    x = (x if dtype.is_floating_point else x.nan_to_num(posinf=7, neginf=0)).to(dtype)
    for given in (x, x.flip(1), x[:1], x[4:]):
        for actual, expected in zip(operator(given), extremes(given), strict=True):
            assert actual.dtype is expected.dtype
            torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    assert operator.last_rung == "cpp"


def test_only_the_first_of_equals_gets_the_gradient() -> None:
    operator = Operator(largest, settings=quiet_settings())
    mine, theirs = (torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], requires_grad=True) for _ in range(2))
    operator(mine).sum().backward()
    largest(theirs).sum().backward()
    assert mine.grad is not None
    assert theirs.grad is not None
    assert torch.equal(mine.grad, theirs.grad)
