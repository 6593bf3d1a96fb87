"""Slices that have one element wherever guards hold, so that torch broadcasts them without a guard of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import Tensor

from opwright.api.operator import Operator
from tests.operator.against_eager import assert_as_eager, random
from tests.quiet_settings import quiet_settings


def product(x: Tensor) -> Tensor:
    return x[0:4:2] * x[1:4:2]


def apart(x: Tensor) -> Tensor:
    return x[:4:2].sin() + x[1:4:2].cos()


def of_a_slice(x: Tensor) -> Tensor:
    """A half of a half, rounded up."""
    return x[1:4:2][::2] * x


@pytest.mark.parametrize("first", [2, 3, 8])
@pytest.mark.parametrize("function", [product, apart, of_a_slice])
def test_they_are_broadcast(function: Callable[..., Tensor], first: int) -> None:
    """Of three rows, there are two even ones and one odd one."""
    name = f"slices_of_one::{function.__name__}_{first}"
    operator = Operator(function, name=name, settings=quiet_settings(optimized=False))
    for size in (first, 3, 4, 7):
        assert_as_eager(operator, random(size, 5))
