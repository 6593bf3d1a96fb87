"""Choices that are made once for a row: exact in every dtype, wherever their condition comes from."""

import pytest
import torch

import opwright
from tests.suite.nights import mostly_at_night

ROWS, COLUMNS = 5, 67


@opwright.operator
def chosen_at_points(x: torch.Tensor, y: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    return torch.where(kept, x, y)


@opwright.operator
def chosen_by_length(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.where(lengths > 2, x, 7) + torch.where(lengths > 3, 1, x)


@opwright.operator
def chosen_in_rows(x: torch.Tensor, kept: torch.Tensor, causal: torch.Tensor) -> torch.Tensor:
    return torch.where(kept & causal, x, -torch.inf).logsumexp(-1)


@opwright.operator
def chosen_by_a_reduction(x: torch.Tensor) -> torch.Tensor:
    largest = x.amax(-1, keepdim=True)
    return torch.where(largest > 1, x, 0).sum(-1)


@opwright.operator
def summed_where_kept(x: torch.Tensor, kept: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    chosen = torch.where(kept, x, 0)
    return chosen.sum(0), chosen.sum(1)


def numbers(dtype):
    x = torch.randn(ROWS, COLUMNS) * 3
    if dtype.is_floating_point:
        x[1, 2], x[2, 3], x[3, 4], x[4, 5] = torch.nan, torch.inf, -torch.inf, -0.0
    return x.to(dtype)


KEPT = torch.tensor([True, False, True, False, True])[:, None]


def assert_same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    if expected.is_floating_point():
        numbers_at = ~expected.isnan()
        assert torch.equal(actual[numbers_at].signbit(), expected[numbers_at].signbit())


DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.float64, torch.int32, torch.int8]


@pytest.mark.parametrize("dtype", mostly_at_night(DTYPES, by_day=3))
def test_at_points_the_result_is_eagers(dtype):
    x, y = numbers(dtype), numbers(dtype).flip(1)
    assert_same(chosen_at_points.on("cpp")(x, y, KEPT), torch.where(KEPT, x, y))
    lengths = torch.arange(ROWS)[:, None]
    assert_same(chosen_by_length.on("cpp")(x, lengths), chosen_by_length.reference(x, lengths))


@pytest.mark.parametrize("size", [COLUMNS, 9], ids=["one row after another", "rows in lanes"])
@pytest.mark.parametrize("dtype", mostly_at_night([torch.float32, torch.float64], by_day=1))
def test_in_rows(size, dtype):
    x = torch.randn(40, size, dtype=dtype)
    kept, causal = torch.rand(40, 1) > 0.3, torch.rand(40, size) > 0.2
    torch.testing.assert_close(
        chosen_in_rows.on("cpp")(x, kept, causal), chosen_in_rows.reference(x, kept, causal), equal_nan=True
    )
    torch.testing.assert_close(chosen_by_a_reduction.on("cpp")(x), chosen_by_a_reduction.reference(x))
    for actual, expected in zip(
        summed_where_kept.on("cpp")(x, kept), summed_where_kept.reference(x, kept), strict=True
    ):
        torch.testing.assert_close(actual, expected)
