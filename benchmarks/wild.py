"""Training steps of models that others wrote, against eager and torch.compile: forward, loss, gradients; first calls.

python benchmarks/wild.py [--without-compile] [--processor-time] [--json FILE]

It needs the extra `wild`, and each model runs in a process of its own. OPWRIGHT_BENCH_NAMES names some of the models,
separated by semicolons, and OPWRIGHT_BENCH_THREADS is how many threads are used (1). "whole" is 1 where kernels serve
all of a model at once, and "parts with kernels" how many modules are served as a whole.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script
from wild_models import MODELS, make

import opwright
from opwright.binding.native import native

LEAST_OF_EAGER, LEAST_OF_COMPILE, MOST_S_OF_FIRST = 1.3, 1.0, 30.0
TRAINED = ("transformers/bert", "transformers/gpt2", "transformers/llama", "transformers/vit")
_PROGRAM = "import json, sys; from wild import figures_of; print(json.dumps(figures_of(*sys.argv[1:])))"


def measure(options: Options) -> Scorecard:
    """Run every model."""
    named = os.environ.get("OPWRIGHT_BENCH_NAMES", "").split(";")
    names = [name for name in MODELS if named == [""] or name in named]
    rows = [Row(name, _run(name, options)) for name in (names[:1] if options.quick else names)]
    targets = [
        Target(f"{row.name}: {figure}", value, relation, bound)
        for row in rows
        for figure, relation, bound in (
            ("eager / opwright", ">=", LEAST_OF_EAGER if row.name in TRAINED else 1.0),
            ("compile / opwright", ">=", LEAST_OF_COMPILE),
            ("first, s", "<=", MOST_S_OF_FIRST),
        )
        if (value := row.figures[figure]) is not None
    ]
    return Scorecard(f"training steps of models that others wrote, float32, {_threads()} thread(s)", rows, targets)


def _threads() -> int:
    return int(os.environ.get("OPWRIGHT_BENCH_THREADS", "1"))


def _run(name: str, options: Options) -> Mapping[str, float | None]:
    folder = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}", "OPWRIGHT_QUIET": "1"}
    command = [sys.executable, "-c", _PROGRAM, name, json.dumps(asdict(options))]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr)
    figures: Mapping[str, float | None] = json.loads(ended.stdout.splitlines()[-1])
    return figures


def figures_of(name: str, options_as_json: str) -> dict[str, Any]:
    """Measure a model in this process."""
    options = Options(**json.loads(options_as_json))
    torch.set_num_threads(_threads())
    subject = make(name)
    plain, served = subject.model, opwright.module(copy.deepcopy(subject.model))
    _step(subject, plain)
    start = time.perf_counter()
    _step(subject, served)
    first = time.perf_counter() - start
    native.wait(300)  # for the extension module, which a machine builds once
    ways = {"eager": lambda: _step(subject, plain), "opwright": lambda: _step(subject, served)}
    if not (options.quick or options.without_compile):
        compiled = torch.compile(copy.deepcopy(plain))
        ways["compile"] = lambda: _step(subject, compiled)
    medians = medians_us(ways, options)
    told = str(served.explain()).splitlines()  # type: ignore[operator]
    raced = medians.get("compile")
    return {
        "first, s": first,
        **{f"{way}, ms": median / 1e3 for way, median in medians.items()},
        "eager / opwright": medians["eager"] / medians["opwright"],
        "compile / opwright": raced and raced / medians["opwright"],
        "whole": float("kernels: " in told[0]),
        "parts with kernels": float(sum("kernels: " in line for line in told)),
    }


def _step(subject: Any, model: torch.nn.Module) -> None:
    _, loss = subject.loss(model)
    loss.backward()


if __name__ == "__main__":
    run_script(measure, __doc__)
