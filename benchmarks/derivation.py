"""How long the first call of a large function or model takes, forward and backward, with a cold and with a warm cache.

python benchmarks/derivation.py [--json FILE]

Each case runs in processes of its own, as in first_call.py: torch is imported, and eager has run once, before the clock
starts. "cold" begins with an empty cache, "warm" is a second process on the same cache. "processor" is the processor
time of the cold call and of the compilers that it starts, which load from others disturbs least.
OPWRIGHT_BENCH_NAMES names some of the cases.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from scorecard import Options, Row, Scorecard, Target, run_script

MOST_S_OF_A_BLOCK, MOST_S_OF_A_MODEL, MOST_S_OF_A_RECURRENCE, MOST_S_WARM = 5.0, 30.0, 10.0, 0.5
_LIMITS = {
    **dict.fromkeys(("transformer encoder layer", "UNet residual block", "ConvNeXt block"), MOST_S_OF_A_BLOCK),
    **dict.fromkeys(("12 encoder layers", "12 residual blocks", "12 ConvNeXt blocks"), MOST_S_OF_A_MODEL),
    **dict.fromkeys(("RK4, 20 steps", "scan of 64", "CRF, 16 steps", "LLTM, 32 steps"), MOST_S_OF_A_RECURRENCE),
    "16 linear layers": MOST_S_OF_A_BLOCK,
}
_PROGRAM = """
import json, resource, sys, time
import torch
from derivation_cases import CASES

torch.manual_seed(0)
thing, given = CASES[sys.argv[1]]()
is_module = isinstance(thing, torch.nn.Module)
given = given if is_module else [tensor.requires_grad_() for tensor in given]

def step(function):
    made = function(*given)
    (sum(each.sum() for each in made) if isinstance(made, tuple) else made.sum()).backward()

def used():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

def best(function):
    times = []
    for _ in range(30):
        start = time.perf_counter()
        step(function)
        times.append(time.perf_counter() - start)
    return 1e6 * min(times)

step(thing)
import opwright
fast = opwright.module(thing) if is_module else opwright.operator(thing)
start, before = time.perf_counter(), used()
step(fast)
first = {"first": time.perf_counter() - start, "processor": used() - before}
print(json.dumps(first | {"step": best(fast), "eager": best(thing)}))
"""


def measure(options: Options) -> Scorecard:
    """Run every case in a process with an empty cache, then in another one on the same."""
    named = os.environ.get("OPWRIGHT_BENCH_NAMES", "").split(";")
    cases = [name for name in _LIMITS if named == [""] or name in named]
    rows = [_row(name) for name in (cases[:1] if options.quick else cases)]
    targets = [
        target
        for row in rows
        for target in (
            Target(f"{row.name}: cold", row.figures["cold, s"] or 0, "<=", _LIMITS[row.name], " s"),
            Target(f"{row.name}: warm", row.figures["warm, s"] or 0, "<=", MOST_S_WARM, " s"),
        )
    ]
    return Scorecard("first call of large functions and models, forward + backward", rows, targets)


def _row(name: str) -> Row:
    with tempfile.TemporaryDirectory() as caches:
        cold, warm = _run(name, Path(caches)), _run(name, Path(caches))
    figures = {"cold, s": cold["first"], "processor, s": cold["processor"], "warm, s": warm["first"]}
    return Row(name, figures | {"a step, µs": warm["step"], "eager, µs": warm["eager"]})


def _run(name: str, caches: Path) -> Mapping[str, float]:
    environment = os.environ | {"OPWRIGHT_CACHE": str(caches / "opwright"), "OPWRIGHT_QUIET": "1"}
    environment |= {"OPWRIGHT_TAPE": "off", "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"}
    program = caches / "first_call.py"
    program.write_text(_PROGRAM)
    ended = subprocess.run(
        [sys.executable, program, name], env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr)
    figures: Mapping[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    run_script(measure, __doc__)
