"""How long one waits for the first call of a new operator, forward and backward, with a cold and with a warm cache.

python benchmarks/first_call.py [--json FILE]

Every figure is the median over fresh processes. torch is imported, and has run eager forward and backward once, before
the clock starts, so that no way pays for what they all need. opwright's hot path in C++ is built beside the calls, once
on a machine: a process with cold caches does without it, one with warm caches finds it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from scorecard import Options, Row, Scorecard, Target, run_script

MOST_COLD_S = 1.5
MOST_WARM_S = 0.3
PROCESSES = 5
PROCESSES_OF_PEERS = 2
_TAPE = {"cold": "off", "warm": "background"}

_PREAMBLE = """
import json, time, torch
from torch.nn import functional

def swish_gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.silu(x) * torch.tanh(y) + x

x, y = torch.randn(64, 256, requires_grad=True), torch.randn(64, 256, requires_grad=True)
cotangent = torch.ones(64, 256)

def call(function):
    torch.autograd.grad(function(x, y), (x, y), cotangent)

call(swish_gate)
start = time.perf_counter()
"""
_REPORT = """
called = time.perf_counter()
parts = {"import": imported - start, "decorate": made - imported, "first call": called - made, "total": called - start}
print(json.dumps(parts))
"""
_WAYS = {
    "opwright": """
import opwright
imported = time.perf_counter()
fast = opwright.operator(swish_gate)
made = time.perf_counter()
call(fast)
assert fast.last_rung == "cpp", fast.last_rung
""",
    "torch.compile": """
imported = start
fast = torch.compile(swish_gate)
made = time.perf_counter()
call(fast)
""",
    "load_inline, by hand": """
from torch.utils.cpp_extension import load_inline
imported = time.perf_counter()
text = '''
at::Tensor forward(at::Tensor x, at::Tensor y) { return at::silu(x) * at::tanh(y) + x; }
std::vector<at::Tensor> backward(at::Tensor x, at::Tensor y, at::Tensor g) {
  auto s = at::sigmoid(x), t = at::tanh(y);
  return {g * (t * s * (1 + x * (1 - s)) + 1), g * x * s * (1 - t * t)};
}
'''
library = load_inline("swish_gate", text, functions=["forward", "backward"])
class SwishGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return library.forward(x, y)
    @staticmethod
    def backward(ctx, g):
        return tuple(library.backward(*ctx.saved_tensors, g))
made = time.perf_counter()
call(SwishGate.apply)
""",
}


def measure(options: Options) -> Scorecard:
    """Start processes, each cold one with empty caches, each warm one with those of a cold one."""
    ways = ["opwright"] if options.quick else list(_WAYS)
    rows = [row for way in ways for row in _rows(way, options)]
    calls = {row.name: row.figures.get("first call") for row in rows}
    bounds = {"opwright, cold": MOST_COLD_S, "opwright, warm": MOST_WARM_S}
    targets = [
        Target(f"{name}: first call", seconds, "<=", bounds[name], " s")
        for name, seconds in calls.items()
        if name in bounds and seconds is not None
    ]
    return Scorecard("first call of a new operator, forward + backward; seconds", rows, targets)


def _rows(way: str, options: Options) -> list[Row]:
    processes = 1 if options.quick else PROCESSES if way == "opwright" else PROCESSES_OF_PEERS
    found: dict[str, list[Mapping[str, float]]] = {"cold": [], "warm": []}
    for _ in range(processes):
        with tempfile.TemporaryDirectory() as caches:
            for state, times in found.items():
                if state == "warm" and way == "opwright":
                    _run(way, Path(caches), "now")
                if (run := _run(way, Path(caches), _TAPE[state])) is None:
                    return [Row(f"{way}, {state}", {}) for state in found]
                times.append(run)
    return [Row(f"{way}, {state}", _medians(times)) for state, times in found.items()]


def _medians(times: list[Mapping[str, float]]) -> dict[str, float]:
    return {part: median(each[part] for each in times) for part in times[0]}


def _run(way: str, caches: Path, tape: str) -> Mapping[str, float] | None:
    """One process; None if this way does not work here, as load_inline does not without ninja."""
    variables = ("OPWRIGHT_CACHE", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
    environment = os.environ | {name: str(caches / name.lower()) for name in variables} | {"OPWRIGHT_QUIET": "1"}
    environment["OPWRIGHT_TAPE"] = tape
    program = caches / "first_call_of_swish_gate.py"
    program.write_text(_PREAMBLE + _WAYS[way] + _REPORT)
    ended = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        times: Mapping[str, float] = json.loads(ended.stdout.splitlines()[-1])
        return times
    if way == "opwright":
        raise RuntimeError(ended.stderr)
    print(f"{way} does not work here: {(ended.stderr.splitlines() or ['it says nothing'])[-1]}", file=sys.stderr)
    return None


if __name__ == "__main__":
    run_script(measure, __doc__)
