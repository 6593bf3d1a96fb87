"""The element-wise LLTM cell, forward and backward together, against eager PyTorch and torch.compile.

python benchmarks/lltm_cell.py [--json FILE]

Two more columns say what could be won at best: "same kernels" is an `autograd.Function` by hand around the very kernels
that the operator runs; "no work" is one whose passes hand out tensors that were made before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from by_hand import function_around, same_kernels
from example_operators import example_operator
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script

from opwright.benchmark.stopwatch import Thunk

SIZES = ((16, 128), (64, 128), (256, 1024), (1024, 4096))
LEAST_SPEEDUP = 2.5


def measure(options: Options) -> Scorecard:
    """Race the three at every size; torch.compile starts anew for each, with exactly its sizes."""
    sizes = SIZES[:1] if options.quick else SIZES
    rows = [_row(batch, state, options) for batch, state in sizes]
    mean = geometric_mean([figure for row in rows if (figure := row.figures["vs the better"]) is not None])
    target = Target("speed-up over the better of eager and compile, geometric mean", mean, ">=", LEAST_SPEEDUP, "×")
    return Scorecard("LLTM cell, forward + backward, float32; µs", rows, [target])


def _row(batch: int, state: int, options: Options) -> Row:
    cell = example_operator("lltm_cell")
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(batch, size, generator=generator).requires_grad_() for size in (3 * state, state)]
    cotangents = [torch.randn(batch, state, generator=generator) for _ in range(2)]

    def training(function: Callable[..., Any]) -> Thunk:
        return lambda: torch.autograd.grad(function(*tensors), tensors, cotangents)

    ways = {"opwright": training(cell), "eager": training(cell.reference)}
    if not options.quick:
        ways["compile"] = training(_compiled(cell.reference))
        ways["same kernels"] = training(same_kernels(cell))
        ways["no work"] = training(_no_work(tensors))
    ways["opwright"]()
    assert cell.last_rung == "cpp", f"served by {cell.last_rung}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, about parts of itself, while it compiles
        medians = medians_us(ways, options)
    peers = [medians[name] for name in ("eager", "compile") if name in medians]
    return Row(f"{batch} × {state}", medians | {"vs the better": min(peers) / medians["opwright"]})


def _compiled(reference: Callable[..., Any]) -> Callable[..., Any]:
    torch.compiler.reset()
    return torch.compile(reference, dynamic=False)


def _no_work(tensors: Sequence[torch.Tensor]) -> Callable[..., Any]:
    gates, old_cell = (tensor.detach() for tensor in tensors)
    return function_around(lambda *_: (old_cell.detach(), old_cell.detach()), lambda *_: (gates, old_cell))


if __name__ == "__main__":
    run_script(measure, __doc__)
