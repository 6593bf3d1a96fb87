"""What a call costs where the work is next to nothing: 8 elements, two inputs, one output.

python benchmarks/call_cost.py [--json FILE]

The peers are `torch.autograd.Function`s written by hand: one around torch operations, one around the very kernels that
the operator runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from by_hand import Function, same_kernels
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script

import opwright
from opwright.benchmark.stopwatch import Thunk

MOST_OF_A_FUNCTION = 1.0


@opwright.operator(samples=opwright.shapes("N", "N", N=8))
def gated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Make one tensor of two."""
    return torch.tanh(x) * y


class ComposedFunction(torch.autograd.Function):
    """The same, by hand, in torch operations."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(x)
        ctx.save_for_backward(hidden, y)
        return hidden * y

    @staticmethod
    def backward(ctx: Any, cotangents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, y = ctx.saved_tensors
        return cotangents * y * (1 - hidden * hidden), cotangents * hidden


def measure(options: Options) -> Scorecard:
    """Time the call without gradients, the call that records, and the call with its backward pass."""
    functions: dict[str, Function] = {
        "opwright": gated,
        "Function, same kernels": same_kernels(gated),
        "Function, torch operations": ComposedFunction.apply,
        "eager": gated.reference,
    }
    rows = [
        _row("forward, no gradients", functions, _plain, options),
        _row("forward, recording", functions, _recording, options),
        _row("forward + backward", functions, _training, options),
    ]
    targets = [
        Target(f"{row.name}: opwright / Function around torch operations", _quotient(row), "<=", MOST_OF_A_FUNCTION)
        for row in rows
    ]
    return Scorecard("one call on 8 elements; µs", rows, targets)


def _quotient(row: Row) -> float:
    own, peer = row.figures["opwright"], row.figures["Function, torch operations"]
    assert own is not None
    assert peer is not None
    return own / peer


def _row(
    name: str,
    functions: dict[str, Function],
    prepare: Callable[[Function], Thunk],
    options: Options,
) -> Row:
    ways = {way: prepare(function) for way, function in functions.items()}
    ways["opwright"]()
    assert gated.last_rung == "cpp", f"served by {gated.last_rung}"
    return Row(name, medians_us(ways, options))


def _plain(function: Function) -> Thunk:
    x, y = torch.ones(8), torch.ones(8)
    return lambda: function(x, y)


def _recording(function: Function) -> Thunk:
    x, y = torch.ones(8, requires_grad=True), torch.ones(8, requires_grad=True)
    return lambda: function(x, y)


def _training(function: Function) -> Thunk:
    x, y, cotangents = torch.ones(8, requires_grad=True), torch.ones(8, requires_grad=True), torch.ones(8)
    return lambda: torch.autograd.grad(function(x, y), (x, y), cotangents)


if __name__ == "__main__":
    run_script(measure, __doc__)
