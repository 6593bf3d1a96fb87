"""Sizes of the first call at which what is between arguments and results has no elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from tests.operator.against_eager import assert_as_eager, random
from tests.quiet_settings import quiet_settings


def product(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[..., ::2] * x[..., 1::2], x + 1


def stacked(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.stack((x[..., 1:], x[..., 1:].sin()), -1) * 2, x + 1


def summed(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[..., 1:].sin().sum(-1), x[..., 1:].cos().prod(-1, keepdim=True) * x


@pytest.mark.parametrize("function", [product, stacked, summed])
def test_kernels_are_right_for_them_and_for_other_sizes(function: Callable[..., tuple[Tensor, ...]]) -> None:
    operator = Operator(function, name=f"nothing_in_it::{function.__name__}", settings=quiet_settings(optimized=False))
    for shape in ((5, 1), (5, 2), (3, 4)):
        assert_as_eager(operator, random(*shape), order=1)
