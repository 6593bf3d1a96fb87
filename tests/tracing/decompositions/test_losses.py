"""Losses are those of eager where torch's decompositions are not."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import opwright
from opwright.api.operator import Operator


@opwright.operator
def smooth_l1(x: Tensor, y: Tensor) -> Tensor:
    return functional.smooth_l1_loss(x * 2, y, beta=0.5)


@opwright.operator
def huber(x: Tensor, y: Tensor) -> Tensor:
    return functional.huber_loss(x * 2, y, delta=0.5)


@opwright.operator
def l1(x: Tensor, y: Tensor) -> Tensor:
    return functional.l1_loss(x * 2, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("operator", [smooth_l1, huber, l1], ids=lambda operator: operator.__name__)
def test_gradients_are_not_numbers_where_those_of_eager_are_not(
    operator: opwright.Operator, dtype: torch.dtype
) -> None:
    values = [math.nan, math.inf, -math.inf, 0.25, -0.25, 0.0, 1.0, -1.0, 0.1]
    x, y = (torch.tensor(given, dtype=dtype) for given in (values, [0.0] * 9))
    found = []
    for function in (operator, operator.reference):
        leaves = [x.clone().requires_grad_(), y.clone().requires_grad_()]
        found.append(torch.autograd.grad(function(*leaves), leaves))
    assert operator.last_rung == "cpp"
    torch.testing.assert_close(*found, equal_nan=True)


@pytest.mark.falls_back
@pytest.mark.parametrize("loss", [functional.multilabel_margin_loss, torch._C._nn.multilabel_margin_loss])
def test_classes_end_at_the_first_that_is_none(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
    operator = Operator(lambda x, y: loss(x * 2, y) * 2, name="tests::of_several_classes")
    x, y = torch.randn(2, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([[0, 1, -1, 2], [3, -1, -1, 2]])
    found = []
    for function in (operator, operator.reference):
        leaf = x.clone().requires_grad_()
        result = function(leaf, y)
        found.append((function(x, y), result.detach(), *torch.autograd.grad(result.sum(), leaf)))
    torch.testing.assert_close(*found)
