"""What a call costs that has no kernels, beyond the function that serves it: 8 elements, a branch on a value.

python benchmarks/refused_calls.py [--json FILE]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script
from torch import nn

import opwright

MOST_US = 3.0


def looks(x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
    """Branch on a value."""
    return x * scale if x.sum() > 0 else x


def looks_inside(xs: list[torch.Tensor]) -> torch.Tensor:
    """Branch on a value in a list."""
    return xs[0] * 2 if xs[0].sum() > 0 else xs[1]


class Looks(nn.Module):
    """A layer behind a branch on a value, without parts of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Branch on a value."""
        return x * self.weight if x.sum() > 0 else x


def measure(options: Options) -> Scorecard:
    """Time the operator and the function in turns."""
    warnings.simplefilter("ignore", opwright.FallbackWarning)
    x, y = torch.ones(8), torch.ones(8)
    module = Looks()
    cases: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
        "a tensor": (looks, opwright.operator(looks), (x,)),
        "a tensor that requires gradients": (looks, opwright.operator(looks), (x.clone().requires_grad_(),)),
        "a tensor and a float": (looks, opwright.operator(looks), (x, 3.0)),
        "a list": (looks_inside, opwright.operator(looks_inside), ([x, y],)),
        "a module": (module, opwright.module(Looks()), (x,)),
        "a module that changes its argument": (nn.ReLU(inplace=True), opwright.module(nn.ReLU(inplace=True)), (x,)),
    }
    rows = [_row(name, *case, options) for name, case in cases.items()]
    targets = [Target(f"{row.name}: µs beyond the function", _beyond(row), "<=", MOST_US) for row in rows]
    return Scorecard("one call without kernels, on 8 elements; µs", rows, targets)


def _row(
    name: str, function: Callable[..., Any], served: Callable[..., Any], given: tuple[Any, ...], options: Options
) -> Row:
    for _ in range(3):
        served(*given)
    assert served.last_rung == "composed", name  # type: ignore[attr-defined]
    return Row(name, medians_us({"opwright": lambda: served(*given), "function": lambda: function(*given)}, options))


def _beyond(row: Row) -> float:
    own, function = row.figures["opwright"], row.figures["function"]
    assert own is not None
    assert function is not None
    return own - function


if __name__ == "__main__":
    run_script(measure, __doc__)
