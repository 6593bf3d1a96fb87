"""Functions that ask for the class of a tensor: those that answer alike for every class of torch's may run."""

from __future__ import annotations

import pytest
import torch

import opwright


def _framework(x: object) -> str:
    text = str(type(x))
    return "torch" if text.startswith("<class 'torch.") else "another"


def _is_exactly_a_tensor(x: object) -> bool:
    return type(x) is torch.Tensor


def _name(x: object) -> str:
    return type(x).__name__


def _size_if_torch(x: torch.Tensor) -> object:
    return x.shape[0] if str(type(x)).startswith("<class 'torch.") else None


def asks_for_the_framework(x: torch.Tensor) -> torch.Tensor:
    """A library's function tells whose tensor it is."""
    return torch.sin(x) * 2 if _framework(x) == "torch" else x


def asks_for_the_class(x: torch.Tensor) -> torch.Tensor:
    """A trace's tensor is of another class."""
    return torch.sin(x) * 2 if _is_exactly_a_tensor(x) else x


def asks_for_the_name(x: torch.Tensor) -> torch.Tensor:
    """Tensors and parameters have other names."""
    return torch.sin(x) * 2 if _name(x) == "Tensor" else x


def asks_and_measures(x: torch.Tensor) -> torch.Tensor:
    """The answer is of the size that is asked again, so it differs."""
    return torch.sin(x) * 2 if _size_if_torch(x) else x


def test_what_answers_alike_has_kernels() -> None:
    operator, x = opwright.operator(asks_for_the_framework), torch.randn(5)
    torch.testing.assert_close(operator(x), asks_for_the_framework(x))
    assert operator.last_rung == "cpp"


@pytest.mark.falls_back
@pytest.mark.parametrize("function", [asks_for_the_class, asks_for_the_name, asks_and_measures])
def test_what_may_answer_otherwise_is_refused(function: object) -> None:
    operator, x = opwright.operator(function), torch.randn(5)
    for given in (x, torch.nn.Parameter(x)):
        torch.testing.assert_close(operator(given), function(given))
    assert operator.last_rung == "composed"
