"""The element-wise LLTM cell, forward and backward together, against eager PyTorch and torch.compile.

    python benchmarks/lltm_cell.py [--json FILE]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.operators import cell
from benchmarks.scorecard import Measurement, Row, Scorecard, Target, geometric_mean, run_script
from opwright.benchmark.stopwatch import Plan, interleave

SIZES = ((16, 128), (64, 128), (256, 1024), (1024, 4096))
LEAST_SPEEDUP = 1.0


def measure(plan: Plan | None = None, sizes: tuple[tuple[int, int], ...] = SIZES) -> Scorecard:
    """Race the three at every size; torch.compile is compiled for each size alone."""
    rows = [_row(batch, state, plan) for batch, state in sizes]
    mean = geometric_mean([row.figures["vs the better"] for row in rows])
    return Scorecard(
        "LLTM cell, forward and backward, float32, µs",
        tuple(rows),
        (Target("geometric mean of the speed-up over the better of eager and compile", mean, ">=", LEAST_SPEEDUP, "×"),),
    )


def _row(batch: int, state: int, plan: Plan | None) -> Row:
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(batch, size, generator=generator).requires_grad_() for size in (3 * state, state)]
    incoming = [torch.randn(batch, state, generator=generator) for _ in range(2)]

    def training(function: Callable[..., Any]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(function(*tensors), tensors, incoming)

    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, about parts of itself
        compiled = torch.compile(cell.reference, dynamic=False)
        ways = {"opwright": training(cell), "eager": training(cell.reference), "compile": training(compiled)}
        for way in ways.values():
            way()
    assert cell.last_rung == "cpp", cell.last_rung
    timings = interleave(ways, plan=plan)
    return Row(f"{batch}×{state}", _figures(timings))


def _figures(timings: Measurement) -> dict[str, float]:
    medians = {name: timing.median_us for name, timing in timings.items()}
    return {**medians, "vs the better": min(medians["eager"], medians["compile"]) / medians["opwright"]}


if __name__ == "__main__":
    run_script(measure, __doc__)
