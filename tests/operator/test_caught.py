"""Functions that catch what only a trace raises: eager does not go there, so kernels must not either."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import opwright

x = torch.linspace(-1, 2, 12).reshape(3, 4)
MANY = [torch.ones(4) for _ in range(70)]
COUNTS = itertools.count(1)


def of_a_value(x: Tensor) -> Tensor:
    try:
        y = x * x.sum().item()
    except Exception:
        y = torch.tanh(x)
    return y + 1


def of_a_branch(x: Tensor) -> Tensor:
    with contextlib.suppress(Exception):
        return torch.sin(x) if x.sum() > 0 else torch.cos(x)
    return torch.tanh(x) * 2


def of_numpy(x: Tensor) -> Tensor:
    try:
        y = torch.from_numpy(x.numpy()) * 3
    except RuntimeError:
        y = x
    except Exception:
        y = torch.tanh(x)
    return torch.sin(y) + 1


def of_memory(x: Tensor) -> Tensor:
    try:
        scale = 2.0 if x.data_ptr() else 3.0
    except Exception:
        scale = 5.0
    return torch.tanh(x) * scale


def of_a_tensor_from_outside(x: Tensor) -> Tensor:
    try:
        y = x * MANY[0]
    except Exception:
        y = x * 7
    return torch.sin(y)


def of_many_values(x: Tensor) -> Tensor:
    try:
        y = x * float(len(torch.unique(x)))
    except Exception:
        y = x * 7
    return torch.sin(y)


def beside_what_cannot_be_compared(x: Tensor) -> Tensor:
    if x.dim() > 5:  # so that a trace looks whether it runs this line
        x = x * next(COUNTS)
    try:
        scale = 2.0 if x.sum().item() else 3.0
    except Exception:
        scale = 5.0
    return torch.tanh(x) * scale


def beside_an_import(x: Tensor) -> Tensor:
    if x.dim() > 5:
        import colorsys

        x = x * colorsys.ONE_THIRD
    try:
        scale = 2.0 if x.sum().item() else 3.0
    except Exception:
        scale = 5.0
    return torch.tanh(x) * scale


FUNCTIONS = (of_a_value, of_a_branch, of_numpy, of_memory, of_a_tensor_from_outside, of_many_values)
BESIDE = (beside_what_cannot_be_compared, beside_an_import)


@pytest.mark.falls_back
@pytest.mark.parametrize("function", [*FUNCTIONS, *BESIDE], ids=lambda function: function.__name__)
def test_an_error_of_the_trace_that_is_caught_refuses_kernels(function: Callable[[Tensor], Tensor]) -> None:
    operator = opwright.operator(function)
    with pytest.warns(opwright.FallbackWarning):
        torch.testing.assert_close(operator(x), function(x))
    torch.testing.assert_close(operator(x), function(x))
    assert operator.last_rung == "composed"


def test_a_number_that_is_needed_inside_of_a_try_has_kernels_of_its_own() -> None:
    def scaled_by_text(x: Tensor, rate: float) -> Tensor:
        try:
            scale = len(f"{rate}")
        except Exception:
            scale = 100
        return torch.tanh(x) * scale

    operator = opwright.operator(scaled_by_text)
    for rate in (0.5, 0.25, 0.125, 0.0625):
        torch.testing.assert_close(operator(x, rate), scaled_by_text(x, rate))


def test_an_error_that_eager_raises_too_may_be_caught() -> None:
    def reshaped_or_not(x: Tensor) -> Any:
        try:
            y = x.reshape(5, -1)
        except RuntimeError:
            y = torch.tanh(x)
        return y * 2

    operator = opwright.operator(reshaped_or_not)
    torch.testing.assert_close(operator(x), reshaped_or_not(x))
    assert operator.last_rung == "cpp"
