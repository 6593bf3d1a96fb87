"""Powers of a number to integer tensors: they wrap around, or give zeros, as torch has it, and keep to its dtypes."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from opwright.api.operator import Operator
from tests.suite.nights import mostly_at_night

BASES = (0, 1, -1, 2, -2, 3, 7, 127, 2**31, 2**62, -(2**63))
EXPONENTS = torch.tensor([0, 1, 2, 3, 5, 7, 8, 31, 62, 63, 64, 100, -1, -2, -3])
DTYPES = (torch.int64, torch.uint8, torch.int32, torch.int16, torch.int8, torch.bool)


def powers(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(base**x for base in BASES if x.dtype in (torch.int64, torch.bool) or _fits(base, x.dtype))


@cache
def _fits(base: int, dtype: torch.dtype) -> bool:
    return torch.iinfo(dtype).min <= base <= torch.iinfo(dtype).max


@pytest.mark.parametrize("dtype", mostly_at_night(DTYPES, by_day=2), ids=str)
def test_they_are_those_of_torch(dtype: torch.dtype) -> None:
    operator = Operator(powers, name=f"tests::powers_of_{str(dtype).removeprefix('torch.')}")
    x = EXPONENTS.to(dtype)
    for found, expected in zip(operator(x), powers(x), strict=True):
        assert found.dtype is expected.dtype
        assert torch.equal(found, expected)
    assert operator.last_rung == "cpp"
