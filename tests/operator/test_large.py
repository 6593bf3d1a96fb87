"""Tensors of more than 2³¹ elements: every index has 64 bits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings

MANY = 2**31 + 4096


@pytest.mark.nightly
def test_more_elements_than_an_int_counts() -> None:
    def reference(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x + 1, x.sum(), x.view(-1, 4096).amax(0)

    operator = Operator(reference, name="large", settings=quiet_settings())
    x = torch.zeros(MANY, dtype=torch.uint8)
    x[-3:] = torch.tensor([5, 6, 7], dtype=torch.uint8)
    x[2**31] = 9
    added, total, largest = operator(x)
    assert operator.last_rung == "cpp"
    assert total.item() == 27
    assert added[-4:].tolist() == [1, 6, 7, 8]
    assert added[2**31].item() == 10
    assert added[: 2**31].amax().item() == 1
    assert largest[0].item() == 9
    assert largest[-3:].tolist() == [5, 6, 7]


@pytest.mark.nightly
def test_a_stride_beyond_an_int() -> None:
    def reference(x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, x.sum(-1)

    operator = Operator(reference, name="strided", settings=quiet_settings())
    x = torch.zeros(3, 2**30 + 1, dtype=torch.uint8)
    x[:, -1] = torch.tensor([1, 2, 3], dtype=torch.uint8)
    doubled, total = operator(x[:, -5:])
    assert operator.last_rung == "cpp"
    assert doubled[:, -1].tolist() == [2, 4, 6]
    assert total.tolist() == [1, 2, 3]
