"""Tensors in memory of NumPy arrays and the like: what is written there reaches the array, or there are no kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from opwright.errors import NoKernel
from opwright.tracing.interface.specs import ArgumentSpec, TensorSpec
from opwright.tracing.trace import trace

pytestmark = pytest.mark.falls_back

X: tuple[ArgumentSpec, ...] = (TensorSpec("x", torch.float32, (2,)),)
ARRAY = np.array([1.0, 2.0], np.float32)


def add_to_array(x: Tensor) -> Tensor:
    shared = torch.from_numpy(ARRAY)
    shared += 1
    return x * shared


def scale_array(x: Tensor) -> Tensor:
    torch.as_tensor(ARRAY).mul_(2)
    return x * 1


def copy_into_array(x: Tensor) -> Tensor:
    torch.asarray(ARRAY).copy_(x)
    return x * 2


def write_a_view(x: Tensor) -> Tensor:
    torch.from_numpy(ARRAY)[:1].fill_(7)
    return x * 2


def write_by_out(x: Tensor) -> Tensor:
    torch.add(x, 1, out=torch.from_numpy(ARRAY))
    return x * 2


def give_back(x: Tensor) -> Tensor:
    return torch.from_numpy(ARRAY)[:1]


@pytest.mark.parametrize(
    "function", [add_to_array, scale_array, copy_into_array, write_a_view, write_by_out, give_back]
)
def test_memory_of_an_array_is_not_written(function: Callable[[Tensor], Tensor]) -> None:
    before = ARRAY.copy()
    with pytest.raises(NoKernel, match="shares with an object that is no tensor"):
        trace(function, X)
    assert (before == ARRAY).all()


def test_an_array_that_changes_after_it_was_shared_is_noticed() -> None:
    def change_later(x: Tensor) -> Tensor:
        numbers = np.zeros(2, np.float32)
        shared = torch.from_numpy(numbers)
        numbers[0] = 1
        return x * shared

    with pytest.raises(NoKernel, match="changes meanwhile"):
        trace(change_later, X)


@pytest.mark.parametrize(
    "made", [lambda: torch.tensor(ARRAY), lambda: torch.from_numpy(ARRAY).clone(), lambda: torch.tensor([1.0, 2.0])]
)
def test_memory_of_its_own_may_be_written(made: Callable[[], Tensor]) -> None:
    def change(x: Tensor) -> Tensor:
        own = made()
        own += 1
        return x * own

    assert trace(change, X) is not None


def test_reading_is_no_reason() -> None:
    assert trace(lambda x: x * torch.from_numpy(ARRAY) + torch.from_numpy(ARRAY)[:1], X) is not None
