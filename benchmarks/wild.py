"""A training step of models that others wrote, against eager: forward, loss and gradients; and the first call.

python benchmarks/wild.py [--json FILE]

It needs the extra `wild`, one thread is used, and each model runs in a process of its own. OPWRIGHT_BENCH_NAMES names
some of the models. "served" says what runs by kernels: all of the model, parts of it, or nothing.
"""

from __future__ import annotations

import copy
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, run_script
from wild_models import MODELS, make

import opwright
from opwright.binding.native import native

LEAST_OF_EAGER, MOST_S_OF_FIRST = 1.0, 30.0
_WARM_UP, _STEPS = 4, 30
_PROGRAM = "import json, sys; from wild import figures_of; print(json.dumps(figures_of(sys.argv[1])))"


def measure(options: Options) -> Scorecard:
    """Run every model."""
    named = os.environ.get("OPWRIGHT_BENCH_NAMES", "").split(";")
    names = [name for name in MODELS if named == [""] or name in named]
    rows = [Row(name, _run(name)) for name in (names[:1] if options.quick else names)]
    targets = [
        target
        for row in rows
        for target in (
            Target(f"{row.name}: eager / opwright", row.figures["eager / opwright"] or 0, ">=", LEAST_OF_EAGER),
            Target(f"{row.name}: first call", row.figures["first, s"] or 0, "<=", MOST_S_OF_FIRST, " s"),
        )
    ]
    return Scorecard("training steps of models that others wrote, float32, one thread; ms", rows, targets)


def _run(name: str) -> Mapping[str, float | None]:
    folder = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}", "OPWRIGHT_QUIET": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, name], env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr)
    figures: Mapping[str, float | None] = json.loads(ended.stdout.splitlines()[-1])
    return figures


def figures_of(name: str) -> dict[str, Any]:
    """Measure a model in this process."""
    torch.set_num_threads(1)
    subject = make(name)
    plain, served = subject.model, opwright.module(copy.deepcopy(subject.model))
    _step(subject, plain)
    start = time.perf_counter()
    _step(subject, served)
    first = time.perf_counter() - start
    native.wait(300)  # for the extension module, which a machine builds once
    for _ in range(_WARM_UP):
        _step(subject, plain)
        _step(subject, served)
    times: dict[str, list[float]] = {"eager": [], "opwright": []}
    for _ in range(_STEPS):
        for which, model in (("eager", plain), ("opwright", served)):
            start = time.perf_counter()
            _step(subject, model)
            times[which].append(time.perf_counter() - start)
    eager, ours = (1e3 * statistics.median(each) for each in times.values())
    told = str(served.explain()).splitlines()  # type: ignore[operator]
    parts = sum("kernels: " in line for line in told)
    return {
        "first, s": first,
        "eager, ms": eager,
        "opwright, ms": ours,
        "eager / opwright": eager / ours,
        "whole": float("kernels: " in told[0]),
        "parts with kernels": float(parts),
    }


def _step(subject: Any, model: torch.nn.Module) -> None:
    _, loss = subject.loss(model)
    loss.backward()


if __name__ == "__main__":
    run_script(measure, __doc__)
