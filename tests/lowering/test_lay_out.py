"""A Program whose inputs and outputs lie in other orders computes the same, before and after the passes."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from torch import Tensor

from opwright.ir.verifier import verify
from opwright.lowering.lay_out import lay_out
from opwright.passes.order import optimize
from opwright.tracing.interface.orders import Order
from tests.derived import lowered, run, specs_of

ORDERS: list[Order] = [order for order in permutations(range(3)) if order != (0, 1, 2)]


def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    joined = torch.cat([x, y * 2], 2)
    return torch.softmax(joined, 1), (x @ y.transpose(1, 2)).tanh(), x.reshape(x.shape[0], -1) * 3


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_in_any_order(order: Order) -> None:
    x, y = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    program = lowered(function, specs_of(["x", "y"], [x, y]))
    laid_out = lay_out(program, [order, ORDERS[0]], [order, ORDERS[-1], ()])
    verify(laid_out)
    for each in (laid_out, optimize(laid_out, "cpp"), optimize(laid_out, "cuda")):
        for found, expected in zip(run(each, [x, y]), function(x, y), strict=True):
            torch.testing.assert_close(found, expected)


def test_what_lies_as_written_stays_as_it_is() -> None:
    program = lowered(function, specs_of(["x", "y"], [torch.randn(2, 3, 4), torch.randn(2, 3, 4)]))
    assert lay_out(program, [(), ()], [(), (), ()]) is program
