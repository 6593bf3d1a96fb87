"""The order of a tensor's dimensions in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from opwright.binding.native import native
from opwright.settings import Settings
from opwright.tracing.interface.orders import empty_in, in_order, is_dense, order_of, orders_of


class Keeping:
    """Waits for the module in C++."""

    module: Any = None

    def equip(self, native: Any) -> None:
        self.module = native


@pytest.fixture(scope="module")
def tape() -> Any:
    waiting = Keeping()
    native.equip(waiting, Settings.from_environment())
    native.wait(120)
    assert waiting.module is not None
    return waiting.module


ORDERS: list[tuple[Callable[[], Tensor], tuple[int, ...]]] = [
    (lambda: torch.empty(3, 4), ()),
    (lambda: torch.empty(3, 8)[:, ::2], ()),
    (lambda: torch.empty(4, 3).t(), (1, 0)),
    (lambda: torch.empty(1, 3).t(), ()),
    (lambda: torch.empty(4).expand(3, 4), ()),
    (lambda: torch.empty(2, 4, 3).permute(2, 0, 1), (1, 2, 0)),
    (lambda: torch.empty(2, 5, 4, 3).permute(0, 3, 1, 2), (0, 2, 3, 1)),
    (lambda: torch.empty(1, 5, 4, 3).permute(0, 3, 1, 2), (0, 2, 3, 1)),
    (lambda: torch.empty(2, 5, 4, 1).permute(0, 3, 1, 2), (0, 2, 3, 1)),
    (lambda: torch.empty(2, 1, 5, 4), ()),
    (lambda: torch.empty(2, 3, 1, 1), ()),
    (lambda: torch.empty(2, 6, 5, 4, 3).permute(0, 4, 1, 2, 3), (0, 2, 3, 4, 1)),
    (lambda: torch.empty(6).unfold(0, 4, 1), (1, 0)),
    (lambda: torch.empty(6).unfold(0, 3, 1), ()),
]


@pytest.mark.parametrize("made", ORDERS)
def test_the_order_in_python_and_in_cpp(made: tuple[Callable[[], Tensor], tuple[int, ...]], tape: Any) -> None:
    make, order = made
    assert order_of(make()) == order
    assert tape.order_of(make()) == list(order)


@pytest.mark.parametrize("made", ORDERS)
def test_a_tensor_in_an_order(made: tuple[Callable[[], Tensor], tuple[int, ...]]) -> None:
    make, order = made
    tensor = make()
    copy = in_order(tensor.normal_() if is_dense(tensor) else torch.randn(tensor.shape), order)
    assert order_of(copy) == order
    assert is_dense(copy)
    assert order_of(empty_in(order, (), tensor.shape, dtype=tensor.dtype)) == order


def test_arguments_that_lie_as_written_have_no_orders() -> None:
    row, column = torch.empty(3, 4), torch.empty(4, 3).t()
    assert orders_of([row, row[:, ::2], torch.empty(4).expand(3, 4), 2.0, None]) == ()
    assert orders_of([column, row[:1].expand(3, 4), torch.empty(4)]) == ((0, (1, 0), ()), (1, (), (0,)))
