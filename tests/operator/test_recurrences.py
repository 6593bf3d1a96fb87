"""Unrolled recurrences: many equal steps, each of which reads what the one before computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from opwright.api.operator import Operator
from tests.suite.nights import mostly_at_night

Tensors = tuple[torch.Tensor, ...]


def runge_kutta(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    slope = lambda x: torch.tanh(x * w) - 0.1 * x  # noqa: E731
    for _ in range(9):
        first = slope(x)
        second = slope(x + 0.1 * first)
        third = slope(x + 0.1 * second)
        x = x + 0.05 * (first + 2 * second + slope(x + 0.2 * third))
    return x


def scan(x: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
    state, states = torch.zeros_like(x[0]), []
    for t in range(9):
        state = decay * state + x[t].sin()
        states.append(state)
    return torch.stack(states[2:])


def cell(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    for t in range(7):
        i, o, g = functional.linear(torch.cat([h, x[t]], 1), w, b).chunk(3, dim=1)
        c = c + functional.elu(g) * torch.sigmoid(i)
        h = torch.tanh(c) * torch.sigmoid(o)
    return h * c


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "Runge-Kutta": (runge_kutta, ((5, 131), (131,))),
    "scan": (scan, ((9, 3, 133), (3, 133))),
    "cell": (cell, ((7, 5, 3), (12, 7), (12,), (5, 4), (5, 4))),
}


def _inputs(shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype = torch.float32) -> Tensors:
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes)


def _gradients(function: Callable[..., Any], inputs: Tensors) -> Tensors:
    output = function(*inputs)
    return (output, *torch.autograd.grad((output * output.detach()).sum(), inputs))


@pytest.mark.parametrize("name", mostly_at_night(CASES, by_day=1))
def test_as_exact_as_eager(name: str) -> None:
    function, shapes = CASES[name]
    operator = Operator(function, name=f"recurrence_{name[0]}")
    found = _gradients(operator, _inputs(shapes))
    assert operator.last_rung == "cpp"
    exact = _gradients(function, _inputs(shapes, torch.float64))
    eager = _gradients(function, _inputs(shapes))
    for ours, theirs, value in zip(found, eager, exact, strict=True):
        bound = 2 * (theirs - value).abs().max() + 4e-7 * value.abs().max()
        assert (ours - value).abs().max() <= bound
