"""A whole LLTM step, product included: forward and backward, each alone, against the composed function.

python benchmarks/lltm_step.py [--json FILE]

Parameters, hidden state and cell require gradients; the input does not. The backward pass is timed on a retained graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from example_operators import example_operator
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script

from opwright.benchmark.stopwatch import Thunk

SIZES = ((64, 1024, 128), (16, 32, 128), (256, 1024, 1024))
LEAST_SPEEDUP = {"64, 1024, 128": 1.15}  # elsewhere not slower


def measure(options: Options) -> Scorecard:
    """Time both at every size."""
    rows = [row for sizes in (SIZES[1:2] if options.quick else SIZES) for row in _rows(*sizes, options)]
    targets = [
        Target(f"{row.name}: speed-up over composed", row.figures["speed-up"] or 0.0, ">=", _least(row.name), "×")
        for row in rows
    ]
    return Scorecard("whole LLTM step (batch, features, state), float32; µs", rows, targets)


def _least(name: str) -> float:
    return LEAST_SPEEDUP.get(name.rpartition(" ")[0], 1.0)


def _rows(batch: int, features: int, state: int, options: Options) -> list[Row]:
    step = example_operator("lltm")
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    scale = state**-0.5
    wanted = [
        *(normal(batch, state) for _ in range(2)),
        normal(3 * state, features + state) * scale,
        normal(3 * state) * scale,
    ]
    for tensor in wanted:
        tensor.requires_grad_()
    arguments = [normal(batch, features), *wanted]
    cotangents = [normal(batch, state) for _ in range(2)]
    step(*arguments)
    assert step.last_rung == "cpp", f"served by {step.last_rung}"
    functions: dict[str, Callable[..., Any]] = {"opwright": step, "composed": step.reference}
    forward: dict[str, Thunk] = {name: _forward(function, arguments) for name, function in functions.items()}
    backward = {name: _backward(function(*arguments), wanted, cotangents) for name, function in functions.items()}
    name = f"{batch}, {features}, {state}"
    return [
        _row(f"{name} forward", forward, options),
        _row(f"{name} backward", backward, options),
    ]


def _forward(function: Callable[..., Any], arguments: Sequence[torch.Tensor]) -> Thunk:
    return lambda: function(*arguments)


def _backward(
    outputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
) -> Thunk:
    return lambda: torch.autograd.grad(outputs, wanted, cotangents, retain_graph=True)


def _row(name: str, ways: dict[str, Thunk], options: Options) -> Row:
    medians = medians_us(ways, options)
    return Row(name, medians | {"speed-up": medians["composed"] / medians["opwright"]})


if __name__ == "__main__":
    run_script(measure, __doc__)
