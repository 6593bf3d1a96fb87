"""Functions that switch the recording of gradients on or off themselves, called in every mode of torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import grad as gradient_of
from torch.autograd.functional import jacobian

import opwright
from tests.suite.nights import mostly_at_night

pytestmark = [pytest.mark.falls_back]


def is_enabled(x: Tensor) -> Tensor:
    with torch.enable_grad():
        return x.sin() * x


def is_set(x: Tensor) -> Tensor:
    with torch.set_grad_enabled(True):
        return x.sin() * x


def is_set_for_good(x: Tensor) -> Tensor:
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(True)
    y = x.sin() * x
    torch._C._set_grad_enabled(before)
    return y


@torch.enable_grad()
def _decorated(x: Tensor) -> Tensor:
    return x.sin() * x


def is_decorated(x: Tensor) -> Tensor:
    return _decorated(x) * 2.0


def decorated_then_recorded(x: Tensor) -> Tensor:
    return _decorated(x).cos()


def is_one_of_two(x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        y = x.sin()
    return y * 2.0, y.exp()


def one_is_returned(x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        y = x.sin() * x
    return y, y.exp()


def is_off_then_on(x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        y = x.sin() * x
        with torch.enable_grad():
            z = x.cos() * x
    return y * 2.0, z


def is_off(x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        y = x.sin() * x
    return y, x.exp() * y


def detached(x: Tensor) -> Tensor:
    with torch.enable_grad():
        return (x.sin() * x).detach()


def differentiates(x: Tensor) -> Tensor:
    with torch.enable_grad():
        inner = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad((inner.sin() * inner).sum(), inner)
    return gradient * x


def differentiates_as_called(x: Tensor) -> Tensor:
    inner = x.detach().requires_grad_()
    return gradient_of((inner.sin() * inner).sum(), inner)[0] * x


def differentiates_by_a_helper(x: Tensor) -> Tensor:
    return jacobian(lambda x: (x.sin() * x).sum(), x.detach()) * x


def transforms(x: Tensor) -> tuple[Tensor, Tensor]:
    y, pull = torch.func.vjp(lambda x: x.sin() * x, x)
    return y, pull(torch.ones_like(y))[0]


def leaves_inference_mode(x: Tensor) -> Tensor:
    with torch.inference_mode(False):
        return x.sin() * x


def enters_inference_mode(x: Tensor) -> Tensor:
    with torch.inference_mode():
        return x.sin() * x


FUNCTIONS = (
    *(is_enabled, is_set, is_set_for_good, is_decorated, decorated_then_recorded, is_one_of_two, one_is_returned),
    *(is_off_then_on, is_off, detached, differentiates, transforms, leaves_inference_mode, enters_inference_mode),
    *(differentiates_as_called, differentiates_by_a_helper),
)
MODES: dict[str, Callable[[], Any]] = {
    "recording": torch.enable_grad,
    "not recording": torch.no_grad,
    "inference": torch.inference_mode,
}
CALLS = [(mode, requires_grad) for mode in MODES for requires_grad in (False, True)]


def given(function: Callable[..., Any], mode: str, requires_grad: bool) -> Any:
    """What a call tells about its results: values, whether they require gradients, and how they were made."""
    x = torch.linspace(-1.0, 2.0, 24).reshape(4, 6).requires_grad_(requires_grad)
    try:
        with MODES[mode]():
            made = function(x)
    except RuntimeError as error:
        return type(error)
    results = made if isinstance(made, tuple) else (made,)
    flags = [(result.requires_grad, result.is_inference()) for result in results]
    needed = [result.sum() for result in results if result.requires_grad]
    gradients = torch.autograd.grad(needed, x) if needed else ()
    return flags, [result.detach() for result in results], gradients


CASES = [(function, first) for function in FUNCTIONS for first in (0, 1, 3)]


@pytest.mark.parametrize(
    ("function", "first"),
    mostly_at_night(CASES, by_day=CASES[::4]),
    ids=lambda value: getattr(value, "__name__", f"from {value}"),
)
def test_results_are_the_function_s_whatever_was_called_before(function: Callable[..., Any], first: int) -> None:
    def reference(x: Tensor) -> Any:
        return function(x)

    reference.__name__ = f"switched_{function.__name__}_{first}"
    operator = opwright.operator(reference)
    for mode, requires_grad in (*CALLS[first:], *CALLS[:first]):
        if mode == "inference" and function is transforms:
            continue  # torch makes tensors there that are not of the mode
        expected, found = given(function, mode, requires_grad), given(operator, mode, requires_grad)
        assert type(expected) is type(found), (mode, requires_grad)
        if isinstance(expected, tuple):
            assert found[0] == expected[0], (mode, requires_grad)
            torch.testing.assert_close(found[1:], expected[1:])
