"""Results that are copies of contiguous arguments, and views of others, share memory where eager's do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import opwright
from opwright.api.operator import Operator
from tests.operator.against_eager import random
from tests.quiet_settings import quiet_settings


def exchanged(x: Tensor) -> Tensor:
    return x.mT.contiguous()


def in_a_row(x: Tensor) -> Tensor:
    return x.mT.reshape(-1)


def column(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sin(), x[:, 0].contiguous()


def piece(x: Tensor) -> Tensor:
    return x.unbind(1)[1].contiguous()[1:]


def first_rows(x: Tensor) -> Tensor:
    return x[:4].mT.contiguous()


def of_results(x: Tensor) -> tuple[Tensor, Tensor]:
    made = x * 2
    return made, made.mT.contiguous()


def formatted(x: Tensor) -> Tensor:
    return x[None, None].contiguous(memory_format=torch.channels_last)


def detached(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, x.mT.detach().contiguous()


FUNCTIONS = [exchanged, in_a_row, column, piece, first_rows, of_results, formatted, detached]


def shared(function: Callable[..., object], x: Tensor) -> list[bool]:
    """Which of the argument and the results are changed with the others."""
    found = function(x)
    tensors = [x, *(found if isinstance(found, tuple) else (found,))]
    memories = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    return [one == other for one in memories for other in memories]


@pytest.mark.falls_back
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_results_share_memory_as_those_of_eager(function: Callable[..., object], gradient: bool) -> None:
    operator = Operator(function, name=f"maybe_views::{function.__name__}", settings=quiet_settings(optimized=False))
    for shape in ((6, 4), (4, 6)):
        lying = random(*shape, gradient=gradient), random(*shape[::-1], gradient=gradient).t()
        for x in lying + lying[::-1]:
            assert shared(operator, x) == shared(function, x), (shape, x.stride())


def copied(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.mT.clone(), (x.mT * 2).contiguous()


def converted(x: Tensor) -> Tensor:
    return x.mT.double().contiguous()


def copied_again(x: Tensor) -> Tensor:
    return x.mT.contiguous().clone()


@pytest.mark.parametrize("function", [copied, converted, copied_again], ids=lambda function: function.__name__)
def test_copies_in_any_case_have_kernels(function: Callable[..., object]) -> None:
    operator = Operator(function, name=f"maybe_views::{function.__name__}", settings=quiet_settings(optimized=False))
    for x in (random(4, 6), random(6, 4).t()):
        assert shared(operator, x) == shared(function, x)
        assert operator.last_rung == "cpp"


@pytest.mark.falls_back
def test_a_warning_says_what_to_write(told: Callable[[], list[str]]) -> None:
    operator = opwright.operator(exchanged, name="maybe_views::told")
    operator(random(6, 4).t())
    (line,) = told()
    assert "what it does depends on how its arguments lie in memory" in line
    assert "return a copy (.clone())" in line


@pytest.mark.falls_back
def test_a_column_of_an_expanded_argument_is_the_argument_itself() -> None:
    operator = Operator(first_column, name="maybe_views::first_column", settings=quiet_settings(optimized=False))
    for lying in (torch.randn(3, 4), torch.randn(3, 1).expand(3, 4), torch.randn(6, 4)[::2]):
        assert shares(operator, lying) == shares(first_column, lying)
    operator(torch.randn(3, 4))
    assert operator.last_rung == "cpp"


def first_column(x: Tensor) -> Tensor:
    return x[:, 0].contiguous()


def shares(function: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    return function(x).untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
