"""Integers of every size: overflow, conversions, and bits seen as another dtype."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from opwright.api.operator import Operator
from opwright.settings import Settings

pytestmark = pytest.mark.built_together

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
NUMBERS = (
    *(0.0, 1.9, -1.9, 127.5, 128.2, 200.0, 255.9, 256.7, 300.0, -129.0, -200.0, -300.0, 32767.5, 32768.0, 40000.0),
    *(65536.3, -32769.0, 70000.0, 1e6, -1e6, 2e9),
)


def wrapped(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    return x + y, x * y - y, (x + y) > x, -x.abs()


def converted(
    x: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    return x.to(torch.uint8), x.to(torch.int8), x.to(torch.int16), x.to(torch.int32), x.to(torch.int64)


def seen_as_bits(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.view(torch.int16) + 1, (x * 2).view(torch.int16)


@pytest.fixture
def compiled(settings_quick_by_day: Settings) -> Callable[..., Operator]:
    return lambda function: Operator(function, settings=settings_quick_by_day)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_overflow_wraps_around(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    limits, operator = torch.iinfo(dtype), compiled(wrapped)
    values = torch.tensor(
        [limits.min, limits.min + 1, 0, 1, 3, limits.max // 2, limits.max - 1, limits.max], dtype=dtype
    )
    x, y = (grid.contiguous() for grid in torch.meshgrid(values, values, indexing="ij"))
    for actual, expected in zip(operator(x, y), wrapped(x, y), strict=True):
        assert torch.equal(actual, expected)
        assert actual.dtype is expected.dtype
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64, *INTEGERS], ids=str)
def test_conversions(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    operator, x = compiled(converted), torch.tensor(NUMBERS, dtype=torch.float64).to(dtype)
    for actual, expected in zip(operator(x), converted(x), strict=True):
        assert torch.equal(actual, expected)
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_view_as_another_dtype_keeps_the_bits(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    operator, x = compiled(seen_as_bits), torch.linspace(-2, 2, 60).view(6, 10).to(dtype)
    for actual, expected in zip(operator(x), seen_as_bits(x), strict=True):
        assert torch.equal(actual, expected)
    assert operator.last_rung == "cpp"
