"""Rungs written by hand (examples/by_hand): how fast they are, how long an edit takes, and how much there is to write.

python benchmarks/written_by_hand.py [--json FILE]

Edits are measured in fresh processes, from `implement` to the first result, with a cache that holds other kernels.
Beside the time that passed stands the time of processors that was used, which other processes do not stretch. Nothing
here needs a GPU: a CUDA source is compiled, and not run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script

import opwright
from opwright.benchmark.stopwatch import Thunk
from opwright.cli.load import load_operators
from opwright.handwritten.declaration import read_declarations

EXAMPLES = Path(__file__).parents[1] / "examples" / "by_hand"
MOST_EDIT_S = 1.0
MOST_CUBIN_S = 0.3
LEAST_SPEEDUP = 1.0
SIZES = {"batch": 64, "features": 1024, "state": 128}
EDITS = 5

_PROCESSORS = """
import os
def processors():
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
"""
_EDIT = """
import json, time, torch, opwright
def planted(x: torch.Tensor) -> torch.Tensor:
    return x * {number}
source = '''
template <class T>
void forward(const T* x, T* y, int64_t n) {{ for (int64_t k = 0; k < n; ++k) y[k] = {number} * x[k]; }}
'''
x = torch.randn(64, 128)
start, used = time.perf_counter(), processors()
operator = opwright.operator(planted)
operator.implement("cpp", source=source)
y = operator(x)
took = [time.perf_counter() - start, processors() - used]
assert operator.last_rung == "cpp" and torch.allclose(y, x * {number})
print(json.dumps(took))
"""
_CUBIN = """
import json, time, torch, opwright
def planted(x: torch.Tensor) -> torch.Tensor:
    return x * {number}
source = '''
template <class T>
__global__ void forward(const T* x, T* y, int64_t n) {{
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < n) y[k] = {number} * x[k];
}}
'''
from opwright.toolchain.gpu.nvrtc import find_nvrtc
find_nvrtc()
start, used = time.perf_counter(), processors()
operator = opwright.operator(planted)
operator.implement("cuda", source=source)
(rung,) = [rung for rung in operator.rungs() if rung.name == "cuda"]
took = [time.perf_counter() - start, processors() - used]
assert rung.available or "compiles for" in rung.reason, rung.reason
print(json.dumps(took))
"""


def measure(options: Options) -> list[Scorecard]:
    """The cards, the cheap ones first."""
    cards = [_calls(options), _edits(options), _cell(options)]
    return cards if options.quick else [*cards, _step(options), _written()]


def _operator(name: str) -> opwright.Operator:
    file, _, short = name.partition(":")
    (found,) = load_operators(f"{EXAMPLES / file}.py:{short}")
    assert isinstance(found, opwright.Operator)
    return found


def _derived(operator: opwright.Operator) -> opwright.Operator:
    """The same operator without what is written by hand."""
    return opwright.operator(name=f"{operator.name}_derived", samples=operator.samples)(operator.reference)


# -- calls and passes --------------------------------------------------------------------------------------------------


def _calls(options: Options) -> Scorecard:
    exp = _operator("elementwise:exp")
    x, cotangents = torch.ones(8), torch.ones(8)
    wanting = x.clone().requires_grad_()
    ways = {"by hand": exp.on("cpp"), "derived": _derived(exp), "composed": exp.reference}
    rows = [
        _row("forward, no gradients", {name: _forward(way, [x]) for name, way in ways.items()}, options),
        _row("forward, recording", {name: _forward(way, [wanting]) for name, way in ways.items()}, options),
        _row("forward + backward", {name: _both(way, wanting, cotangents) for name, way in ways.items()}, options),
    ]
    return Scorecard("exp of 8 elements, kernels over pointers; µs", rows, [])


def _cell(options: Options) -> Scorecard:
    cell = _operator("lltm:lltm_cell")
    gates, old_cell = torch.randn(64, 384, requires_grad=True), torch.randn(64, 128, requires_grad=True)
    rows = _passes(cell, [gates, old_cell], [gates, old_cell], [torch.randn(64, 128) for _ in range(2)], options)
    return Scorecard("LLTM cell, 64 × 128, kernels over pointers, float32; µs", rows, [])


def _step(options: Options) -> Scorecard:
    batch, features, state = SIZES.values()
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    wanted = [normal(batch, state), normal(batch, state), normal(3 * state, features + state) * state**-0.5]
    wanted = [tensor.requires_grad_() for tensor in [*wanted, normal(3 * state) * state**-0.5]]
    cotangents = [normal(batch, state) for _ in range(2)]
    rows = _passes(_operator("lltm:lltm"), [normal(batch, features), *wanted], wanted, cotangents, options)
    targets = [
        Target(f"{row.name}: by hand over composed", row.figures["by hand / composed"] or 0.0, ">=", LEAST_SPEEDUP, "×")
        for row in rows
    ]
    return Scorecard("LLTM step, 64, 1024, 128, functions over torch::Tensor, float32; µs", rows, targets)


def _passes(
    operator: opwright.Operator,
    arguments: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    options: Options,
) -> list[Row]:
    ways: dict[str, Callable[..., Any]] = {
        "by hand": operator.on("cpp"),
        "derived": _derived(operator),
        "composed": operator.reference,
    }
    forward = {name: _forward(way, arguments) for name, way in ways.items()}
    backward = {name: _backward(way(*arguments), wanted, cotangents) for name, way in ways.items()}
    return [_row("forward", forward, options), _row("backward", backward, options)]


def _forward(function: Callable[..., Any], arguments: Sequence[torch.Tensor]) -> Thunk:
    return lambda: function(*arguments)


def _backward(
    outputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
) -> Thunk:
    return lambda: torch.autograd.grad(outputs, wanted, cotangents, retain_graph=True)


def _both(function: Callable[..., Any], x: torch.Tensor, cotangents: torch.Tensor) -> Thunk:
    return lambda: torch.autograd.grad(function(x), x, cotangents)


def _row(name: str, ways: dict[str, Thunk], options: Options) -> Row:
    medians = medians_us(ways, options)
    return Row(name, medians | {"by hand / composed": medians["composed"] / medians["by hand"]})


# -- edits -------------------------------------------------------------------------------------------------------------


def _edits(options: Options) -> Scorecard:
    count = 1 if options.quick else EDITS
    stamp = time.time_ns() % 10**6  # numbers that no earlier run has built
    kernel = [_run(_EDIT, f"{stamp + edit}.5") for edit in range(count)]
    cubin = [_run(_CUBIN, f"{stamp + edit}.5") for edit in range(count)]
    rows = [
        Row("kernel in C++: edit to result", _middle(kernel)),
        Row("kernel in CUDA: edit to cubin", _middle(cubin)),
        Row("kernel in CUDA: run on a GPU", {"passed": None, "processors": None}),
    ]
    targets = [
        Target("edit to result of a kernel in C++", rows[0].figures["passed"] or 0.0, "<=", MOST_EDIT_S, " s"),
        Target("edit to cubin of a kernel in CUDA", rows[1].figures["passed"] or 0.0, "<=", MOST_CUBIN_S, " s"),
    ]
    return Scorecard("one edit of a one-line kernel, in fresh processes; seconds", rows, targets)


def _middle(times: Sequence[dict[str, float]]) -> dict[str, float]:
    return {what: median(each[what] for each in times) for what in times[0]}


def _run(script: str, number: str) -> dict[str, float]:
    command = [sys.executable, "-c", _PROCESSORS + script.format(number=number)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    passed, used = json.loads(done.stdout.splitlines()[-1])
    return {"passed": passed, "processors": used}


# -- what there is to write --------------------------------------------------------------------------------------------


def _written() -> Scorecard:
    cell = _effort("lltm_cell.cpp", "lltm_cell.h") | {"first call, cold, s": _cold("lltm_cell")}
    step = _effort("lltm.cpp", "lltm_cell.h") | {"first call, cold, s": _cold("lltm")}
    derived = {"functions": 0, "lines": 0, "first call, cold, s": _cold("lltm", derived=True)}
    rows = [
        Row("LLTM cell: kernels over pointers", cell),
        Row("LLTM step: functions over torch::Tensor", step),
        Row("LLTM step: derived", derived),
    ]
    return Scorecard("what is written in C++ beside the reference, and the first forward and backward", rows, [])


def _effort(*files: str) -> dict[str, float | None]:
    texts = [(EXAMPLES / file).read_text(encoding="utf-8") for file in files]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    functions = sum(len(read_declarations(text, "")) for text in texts)
    return {"functions": functions, "lines": sum(1 for line in lines if line and not line.startswith("//"))}


_COLD = """
import time, sys, torch
from pathlib import Path
sys.path.insert(0, {benchmarks!r})
from written_by_hand import _derived, _operator
operator = _operator("lltm:{name}")
operator = _derived(operator) if {derived} else operator
sample = next(iter(operator.samples("cpu", torch.float32)))
given = [tensor.requires_grad_() for tensor in sample.tensors()]
start = time.perf_counter()
outputs = operator(*given)
torch.autograd.grad(outputs, given, [torch.ones_like(output) for output in outputs])
took = time.perf_counter() - start
assert operator.last_rung == "cpp"
print(took)
"""


def _cold(name: str, *, derived: bool = False) -> float:
    """The first call, forward and backward, in a process with an empty cache."""
    script = _COLD.format(benchmarks=str(Path(__file__).parent), name=name, derived=derived)
    with tempfile.TemporaryDirectory() as cache:
        environment = {"OPWRIGHT_CACHE": cache, "OPWRIGHT_TAPE": "off"}
        command = ["env", *(f"{key}={value}" for key, value in environment.items()), sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    run_script(measure, __doc__)
