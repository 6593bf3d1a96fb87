"""Literals that are equal and yet different: every kernel has the ones that its function has, to the bit."""

import math

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from tests.operator.random_literals import differences, random_function
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.built_together

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.25, math.inf, -math.inf, math.nan, 1e-40, 3e38, 2.0**24]


def both_zeros(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return x / 0.0, x / -0.0, torch.copysign(x, 0.0), torch.copysign(x, -0.0)


def both_nans(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.copysign(x, math.nan), torch.copysign(x, -math.nan)


def differences_from_zeros(x: Tensor) -> tuple[Tensor, ...]:
    """Of what a compiler knows not to be -0."""
    n = (x * 0).to(torch.int32)
    return (
        0.0 - n,
        -0.0 - n,
        -(n * 1.0) + 0.0,
        0.0 - abs(n * 1.0),
        0.0 - n * n * 1.0,
        -abs(n * 1.0) + 0.0,
        -abs(n) - 0.0,
    )


@pytest.mark.parametrize("rung", ["cpp", "function"])
@pytest.mark.parametrize("function", [both_zeros, both_nans, differences_from_zeros])
def test_signs_of_literals_are_kept(function, rung):
    x = torch.tensor([1.0, -2.0, 3.0])
    operator = Operator(function, settings=quiet_settings(optimized=False))
    for result, expected in zip(operator.on(rung)(x), function(x), strict=True):
        assert torch.equal(result, expected)
        assert torch.equal(result.signbit(), expected.signbit())


def test_signs_of_numbers_given_from_outside_are_kept():
    def signed(x: Tensor, sign: float) -> Tensor:
        return torch.copysign(x, sign)

    operator = Operator(signed, settings=quiet_settings(optimized=False))
    for sign in (math.nan, -math.nan, 0.0, -0.0, 3.0, -3.0, math.nan, -math.nan):
        expected = math.copysign(1, sign)
        assert operator(torch.ones(3), sign).tolist() == [expected] * 3


FLOATING = [torch.float32, torch.float64]
INTEGRAL = [torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]


def _special(dtype):
    numbers = torch.tensor(SPECIAL, dtype=torch.float64)
    if dtype.is_floating_point:
        return numbers.to(dtype)
    limits = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.tensor([*limits, 0, 1, 2, 3, 7, 100]).to(dtype)


@pytest.mark.falls_back
@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGRAL], ids=str)
@pytest.mark.parametrize("seed", mostly_at_night(range(60), by_day={0, 2}))
def test_random_literals(seed, dtype):
    x = _special(dtype)
    function = random_function(seed, x)
    operator = Operator(function, settings=quiet_settings(optimized=False))
    assert not differences(function, operator(x), function(x))
