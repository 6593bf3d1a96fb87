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


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("p", [1, 2])
def test_what_is_not_a_number_adds_nothing_to_a_loss_with_a_margin(p: int, reduction: str) -> None:
    def loss(x: Tensor, weight: Tensor) -> Tensor:
        target = torch.tensor([0, 2, 1, 3, 3, 0])
        return functional.multi_margin_loss(x * 2, target, p, 0.7, weight, reduction=reduction)

    operator = Operator(loss, name=f"tests::margin_{p}_{reduction}")
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    x[0, 0], x[1, 1], x[2, 2], x[3, 0], x[4, 3] = math.nan, math.nan, math.inf, -math.inf, math.inf
    for weight in (torch.tensor([1.0, 0.5, -2.0, 0.3]), torch.tensor([math.inf, math.nan, 1.0, 0.0])):
        found = []
        for function in (operator, loss):
            leaf = x.clone().requires_grad_()
            result = function(leaf, weight)
            found.append((result.detach(), *torch.autograd.grad(result.sum(), leaf)))
        assert operator.last_rung == "cpp"
        torch.testing.assert_close(*found, equal_nan=True)
    with pytest.raises(RuntimeError, match=r"target|out of"):
        opwright.operator(lambda x, t: functional.multi_margin_loss(x * 2, t) * 2)(x, torch.tensor([0, 1, 2, 3, 4, 0]))


def test_a_loss_with_a_margin_of_one_row() -> None:
    operator = Operator(lambda x, t: functional.multi_margin_loss(x * 2, t) * 2, name="tests::margin_of_one_row")
    x, target = torch.tensor([0.3, math.nan, 0.5, -1.0]), torch.tensor(2)
    torch.testing.assert_close(operator(x, target), operator.reference(x, target))
    assert operator.last_rung == "cpp"
