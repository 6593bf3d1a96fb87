"""Batch norm changes its running statistics, which has to be declared, and does so in every dtype."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import opwright
from opwright.errors import UndeclaredMutation


def batch_norm(x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.batch_norm(x, mean, variance, weight, None, True, 0.3, 1e-3)


def _arguments(dtype: torch.dtype) -> list[Tensor]:
    torch.manual_seed(0)
    x = (torch.randn(4, 3, 5) * 2 + 1).to(dtype)
    statistics = torch.float32 if dtype.itemsize < 4 else dtype
    return [x, torch.zeros(3, dtype=statistics), torch.ones(3, dtype=statistics), torch.randn(3, dtype=statistics)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_statistics_are_updated(dtype: torch.dtype) -> None:
    served = opwright.operator(mutates=("mean", "variance"))(batch_norm)
    given, expected = _arguments(dtype), _arguments(dtype)
    for _ in range(2):
        tolerance = 2e-2 if dtype is torch.bfloat16 else 1e-5
        torch.testing.assert_close(served(*given), batch_norm(*expected), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-5)
    assert served.last_rung == "cpp"


def test_an_undeclared_update_is_refused() -> None:
    with pytest.raises(UndeclaredMutation, match="'mean'"):
        opwright.operator(batch_norm)(*_arguments(torch.float32))
