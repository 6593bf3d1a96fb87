"""Operators that change arguments with gaps in memory, or that begin later in it, whether or not Python serves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import opwright


def _writes_into_what_may_be_a_copy(x: Tensor) -> Tensor:
    x.contiguous().mul_(2)
    return x * 1


def _draws(x: Tensor) -> Tensor:
    x.normal_()
    return x * 1


def _draws_along(x: Tensor) -> Tensor:
    x.copy_(functional.dropout(x))
    return x * 1


def _reads_its_memory(x: Tensor) -> Tensor:
    beginning = x.as_strided((2, 2), (2, 1), 0) * 1
    x.mul_(2)
    return beginning


LAYOUTS: dict[str, Callable[[], Tensor]] = {
    "row-major": lambda: torch.arange(24.0).view(4, 6),
    "every other": lambda: torch.arange(48.0).view(4, 12)[:, ::2],
    "columns": lambda: torch.arange(40.0).view(4, 10)[:, :6],
    "later rows": lambda: torch.arange(48.0).view(8, 6)[4:],
    "transposed, every other": lambda: torch.arange(48.0).view(6, 8)[:, ::2].t(),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("tape", ["now", "off"])
@pytest.mark.parametrize(
    "function", [_writes_into_what_may_be_a_copy, _draws, _draws_along, _reads_its_memory], ids=lambda f: f.__name__
)
def test_as_in_eager(function: Callable[[Tensor], Tensor], tape: str, gradients: bool, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPWRIGHT_TAPE", tape)
    operator = opwright.operator(function, mutates=("x",), name=f"tests::gaps{function.__name__}")
    for layout in ("row-major", *LAYOUTS, "row-major"):
        found = []
        for call in (function, operator):
            x = LAYOUTS[layout]()
            torch.manual_seed(0)
            with torch.set_grad_enabled(gradients):
                found.append((call(x), x, torch.rand(1)))
        torch.testing.assert_close(*found, msg=lambda text, layout=layout: f"{layout}: {text}")
    assert operator.last_rung == "cpp"


class _Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("factor", torch.ones(4, 10)[:, :6])
        self.weight = nn.Parameter(torch.ones(6))

    def forward(self, x: Tensor) -> Tensor:
        self.factor.contiguous().add_(1)
        return x * self.factor * self.weight


@pytest.mark.falls_back
@pytest.mark.parametrize("tape", ["now", "off"])
def test_buffers_of_modules(tape: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPWRIGHT_TAPE", tape)
    written, x = _Scaled(), torch.randn(4, 6)
    served = opwright.module(_Scaled())
    for _ in range(3):
        torch.testing.assert_close(served(x), written(x))
    torch.testing.assert_close(served.factor, written.factor)
