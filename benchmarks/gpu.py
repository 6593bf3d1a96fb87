"""Everything there is to say about a GPU, in one call of at most eight minutes: what is right, and how fast it is.

python benchmarks/gpu.py [--json FILE] [--minutes 8] [--quick] [--without-checks]

Checks come first; a kernel whose result is wrong has no time. Work is timed between CUDA events with the caches flushed
before every call, whole steps and the launch by the clock of the processor. Exit codes: 0 all right, 1 something is
wrong, 2 there is no GPU. On another machine `opwright check --device cuda` says more about one operator.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from example_operators import example_operator
from gpu_checks import run_checks
from gpu_operators import Course, courses, gated
from optimizers import BOUND, HYPER, SIZES, ways_of
from rich.console import Console
from rich.text import Text
from scorecard import Options, Row, Scorecard, Target, geometric_mean, render

from opwright import Operator
from opwright.benchmark.gpu_clock import GpuClock, copy_bandwidth
from opwright.benchmark.machine import this_machine
from opwright.benchmark.measure import compiled
from opwright.benchmark.race import race
from opwright.benchmark.stopwatch import Plan, Thunk, interleave
from opwright.binding.variants.backends import examine
from opwright.checking.subject import Candidate
from opwright.errors import OpwrightError
from opwright.settings import Settings

DEVICE = "cuda:0"
STEPS = ((16, 32, 128), (64, 1024, 128))  # the documents' batch, features and state, and the larger one
LEAST_SHARE, LEAST_RATIO, LEAST_MEAN, LEAST_STEP, MOST_LAUNCH = 0.9, 1.0, 1.2, 2.0, 1.5
PLAN = Plan(slice_ns=2_000_000, fewest_rounds=7, most_rounds=15)
_COMPILE_S = 12.0


def main() -> int:
    """Measure, print one table, write JSON."""
    given = _arguments()
    try:
        examine("cuda", Settings.from_environment())
    except OpwrightError as refusal:
        print(f"nothing was measured: {refusal.fact}", file=sys.stderr)
        return 2
    deadline = time.monotonic() + 60 * given.minutes
    findings = {} if given.without_checks else run_checks(DEVICE)
    bandwidth = copy_bandwidth(DEVICE)
    title = f"{torch.cuda.get_device_name(DEVICE)}, forward + backward; µs; a copy moves {bandwidth / 1e9:,.0f} GB/s"
    launch = _launch_row()
    steps = [row for sizes in STEPS for row in _step_rows(*sizes)]
    updates = [row for name in HYPER for sizes in SIZES for row in _update_rows(name, sizes, given.quick)]
    rows: list[Row] = []
    for course in courses(given.quick):
        rows.append(_course_row(course, bandwidth, deadline))
        card = Scorecard(title, [launch, *steps, *updates, *rows], _targets(rows, steps, launch))
        _write(given, card, {"copy_bytes_per_s": bandwidth, "checks": findings})  # what stops the next loses nothing
    _show(card, findings)
    return 1 if any(findings.values()) or any("wrong" in row.name for row in rows) else 0


def _write(given: argparse.Namespace, card: Scorecard, found: dict[str, Any]) -> None:
    record = {"machine": asdict(this_machine()), "quick": given.quick, **found, "benchmarks": [card.to_json()]}
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", default=Path("benchmarks/results/gpu.json"))
    parser.add_argument("--minutes", type=float, default=8.0, help="after which nothing more is compiled")
    parser.add_argument("--quick", action="store_true", help="only see that it runs; the figures mean nothing")
    parser.add_argument("--without-checks", action="store_true", help="only measure")
    return parser.parse_args()


def _course_row(course: Course, bandwidth: float, deadline: float) -> Row:
    """Race one function; where time is short, without torch.compile."""
    operator = Operator(course.function, name=f"gpu_{course.function.__name__}")
    contenders = {
        "composed": Candidate("composed", course.function),
        "cuda": Candidate("cuda", operator, lambda: operator.last_rung),
    }
    if time.monotonic() + _COMPILE_S < deadline:
        contenders["compile"] = Candidate("compile", compiled(course.function))
    found = {entry.contender: entry for entry in race(course.sample(DEVICE), contenders, plan=PLAN, measure=_clock())}
    torch.cuda.empty_cache()
    ours = found["cuda"]
    if ours.training is None or ours.outcome != "measured":
        return Row(f"{course.name}: {ours.outcome}: {ours.reason}", {})
    times = {name: entry.training.median_us for name, entry in found.items() if entry.training}
    peers = [value for name, value in times.items() if name != "cuda"]
    rate = course.bytes_moved and course.bytes_moved / (times["cuda"] * 1e-6)
    return Row(
        course.name,
        {
            "opwright": times["cuda"],
            "eager": times.get("composed"),
            "compile": times.get("compile"),
            "vs the better": min(peers) / times["cuda"] if peers else None,
            "share of the copy": rate / bandwidth if rate else None,
        },
    )


def _clock() -> GpuClock:
    return GpuClock(DEVICE)


def _step_rows(batch: int, features: int, state: int) -> list[Row]:
    """A whole LLTM step by the processor's clock, forward and backward each alone, as the documents time it."""
    step = example_operator("lltm")
    scale = state**-0.5

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=DEVICE)

    wanted = [
        *(normal(batch, state) for _ in range(2)),
        normal(3 * state, features + state) * scale,
        normal(3 * state) * scale,
    ]
    wanted = [tensor.requires_grad_() for tensor in wanted]
    arguments, cotangents = [normal(batch, features), *wanted], [normal(batch, state) for _ in range(2)]
    functions: dict[str, Callable[..., Any]] = {"opwright": step, "eager": step.reference}
    forward = {name: _calling(function, *arguments) for name, function in functions.items()}
    backward = {name: _backward(function(*arguments), wanted, cotangents) for name, function in functions.items()}
    served = "" if step.last_rung != "composed" else " (served by the reference)"
    name = f"LLTM step {batch}, {features}, {state}{served}"
    return [_by_the_processor(f"{name}, forward", forward), _by_the_processor(f"{name}, backward", backward)]


def _launch_row() -> Row:
    operator, x = Operator(gated, name="gpu_launch"), torch.randn(8, device=DEVICE)
    with torch.no_grad():
        operator(x, x)
        ways = {"opwright": _calling(operator, x, x), "eager": _calling(torch.mul, x, x)}
        return _by_the_processor("launch: an operator of one kernel, a built-in one", ways)


def _update_rows(name: str, sizes: str, quick: bool) -> list[Row]:
    """A step of an optimizer: the GPU's work, and the whole step by the processor's clock."""
    every = SIZES[sizes][:: 30 if quick else 1]
    made = ways_of(name, every, torch.float32, Options(quick=True), DEVICE)
    ways: dict[str, Thunk] = {way: make() for way, make in made.items() if way not in (BOUND, "loop")}
    ways["eager"] = ways.pop("foreach")
    for way in ways.values():
        for _ in range(5):
            way()
    on_gpu = {way: found.median_us for way, found in interleave(ways, plan=PLAN, measure=_clock()).items()}
    best = min(value for way, value in on_gpu.items() if way != "opwright")
    whole = _by_the_processor(f"{name}, {sizes}: whole step", ways)
    return [Row(f"{name}, {sizes}: GPU", on_gpu | {"vs the better": best / on_gpu["opwright"]}), whole]


def _calling(function: Callable[..., Any], *arguments: Any) -> Thunk:
    return lambda: function(*arguments)


def _backward(
    outputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
) -> Thunk:
    return lambda: torch.autograd.grad(outputs, wanted, cotangents, retain_graph=True)


def _by_the_processor(name: str, ways: dict[str, Thunk]) -> Row:
    for way in ways.values():
        for _ in range(5):
            way()
    timings = interleave(ways, plan=PLAN, finish=lambda: torch.cuda.synchronize(DEVICE))
    times = {way: timing.median_us for way, timing in timings.items()}
    best = min(value for way, value in times.items() if way != "opwright")
    return Row(name, times | {"vs the better": best / times["opwright"]})


def _targets(rows: Sequence[Row], steps: Sequence[Row], launch: Row) -> list[Target]:
    """The targets about which there are figures."""
    targets = []
    shares = [row for row in rows if row.name.startswith(gated.__name__) and row.figures.get("share of the copy")]
    for row in shares:
        share = row.figures["share of the copy"] or 0.0
        targets.append(Target(f"{row.name}: share of the copy bandwidth", share, ">=", LEAST_SHARE))
    raced = [row for row in rows if row.figures.get("compile") and not row.name.startswith(gated.__name__)]
    ratios = {row.name: row.figures["vs the better"] or 0.0 for row in raced}
    if ratios:
        least = min(ratios, key=lambda name: ratios[name])
        targets.append(Target(f"least speed-up, {least}", ratios[least], ">=", LEAST_RATIO, "×"))
        targets.append(Target("speed-up, geometric mean", geometric_mean(list(ratios.values())), ">=", LEAST_MEAN, "×"))
    for row in steps:
        targets.append(Target(f"{row.name}: speed-up", row.figures["vs the better"] or 0.0, ">=", LEAST_STEP, "×"))
    cost = 1 / (launch.figures["vs the better"] or 1e-9)
    targets.append(Target("cost of a launch against a built-in operation", cost, "<=", MOST_LAUNCH, "×"))
    return targets


def _show(card: Scorecard, findings: dict[str, str]) -> None:
    console = Console()
    console = console if console.is_terminal else Console(width=140)
    console.print(render(card))
    for name, finding in findings.items():
        console.print(Text(f"{'wrong' if finding else 'right'}: {name}{': ' if finding else ''}{finding}"))


if __name__ == "__main__":
    sys.exit(main())
