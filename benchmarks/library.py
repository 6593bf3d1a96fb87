"""The ready operators of opwright.library, forward, and forward and backward together, against eager and torch.compile.

python benchmarks/library.py [NAME ...] [--record FILE]

In float32, at a small, a medium and a large size; torch.compile, for exactly these sizes, at the latter two.
`--record` adds what is measured to a file, operator by operator.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from scorecard import Options, Row, Scorecard, Target, render

import opwright.library
from opwright import Operator
from opwright.benchmark.machine import this_machine
from opwright.benchmark.stopwatch import Plan, Thunk, interleave
from opwright.library.samples import MEASURED

LEAST = 1.0
PLAN = Plan(slice_ns=1_000_000, fewest_rounds=9, most_rounds=11)  # six races for each operator, beside six compilations
COMPILED = ("medium", "large")  # a call of what it compiles takes 40 µs and more, and 270 µs with a backward pass
PASSES = ("forward", "both")


def names() -> list[str]:
    return [name for name, value in vars(opwright.library).items() if isinstance(value, Operator)]


def measure(options: Options, chosen: Sequence[str] = ()) -> Scorecard:
    """Race the three ways for every operator and size."""
    rows = []
    for name in chosen or (names()[:1] if options.quick else names()):
        rows += rows_of(name, options)
    worst = min(ratio for row in rows for each in PASSES if (ratio := row.figures[f"{each} ×"]) is not None)
    target = Target("least speed-up over the better of eager and torch.compile", worst, ">=", LEAST, "×")
    return Scorecard(f"ready operators, float32; µs, {torch.get_num_threads()} threads", rows, [target])


def rows_of(name: str, options: Options) -> list[Row]:
    """One row for each size."""
    operator = getattr(opwright.library, name)
    return [_row(name, operator, size, options) for size in (MEASURED[:1] if options.quick else MEASURED)]


def _row(name: str, operator: Operator, size: str, options: Options) -> Row:
    sample = operator.samples.measured(size, "cpu", torch.float32)
    arguments = [each.requires_grad_() if each.is_floating_point() else each for each in sample.args]
    wanted = [each for each in arguments if each.requires_grad]
    ways: dict[str, Callable[..., Any]] = {"opwright": operator, "eager": operator.reference}
    if size in COMPILED and not (options.quick or options.without_compile):
        torch.compiler.reset()
        ways["compile"] = torch.compile(operator.reference, dynamic=False)
    cotangents = [torch.randn_like(each) for each in _listed(operator.reference(*arguments))]

    def forward(way: Callable[..., Any]) -> Thunk:
        def run() -> Any:
            with torch.no_grad():
                return way(*arguments)

        return run

    def both(way: Callable[..., Any]) -> Thunk:
        return lambda: torch.autograd.grad(_listed(way(*arguments)), wanted, cotangents)

    figures: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, about parts of itself, while it compiles
        for what, work in (("forward", forward), ("both", both)):
            work(operator)()
            assert operator.last_rung == "cpp", f"{name} was served by {operator.last_rung}"
            medians = _medians_us({way: work(function) for way, function in ways.items()}, options)
            figures |= {f"{what}, {way}": median for way, median in medians.items()}
            figures[f"{what} ×"] = min(m for way, m in medians.items() if way != "opwright") / medians["opwright"]
    return Row(f"{name}, {size}, {sample.name}", figures)


def _medians_us(thunks: dict[str, Thunk], options: Options) -> dict[str, float]:
    for thunk in thunks.values():
        for _ in range(3):
            thunk()
    timings = interleave(thunks, plan=options.plan if options.quick else PLAN, clock=options.clock)
    return {way: timing.median_us for way, timing in timings.items()}


def _listed(outputs: Any) -> list[torch.Tensor]:
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def _record(path: Path, card: Scorecard, options: Options) -> None:
    """Put figures in place of those that the file has of the same operators."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    machine = {key: value for key, value in asdict(this_machine()).items() if value} | {
        "threads": torch.get_num_threads(),
        "clock": "processor time" if options.processor_time else "wall clock",
        "date": datetime.now(UTC).date().isoformat(),
    }
    found: dict[str, Any] = {}
    for row in card.rows:
        name, size, _ = row.name.split(", ", 2)
        rounded = {key: float(f"{value:.4g}") for key, value in row.figures.items() if value is not None}
        found.setdefault(name, {"machine": machine, "sizes": {}})["sizes"][size] = {
            "sample": row.name.split(", ")[2]
        } | rounded
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(dict(sorted((kept | found).items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("names", nargs="*", help="operators; all of them by default")
    parser.add_argument("--record", type=Path, metavar="FILE", help="add the figures to a file")
    parser.add_argument("--quick", action="store_true", help="only see that it runs; the figures mean nothing")
    parser.add_argument("--without-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--processor-time", action="store_true", help="measure processor time, on a machine in use")
    given = parser.parse_args()
    options = Options(given.quick, given.without_compile, given.processor_time)
    console = Console(width=200)
    for name in given.names or names():
        card = measure(options, [name])
        console.print(render(card))
        if given.record:
            _record(given.record, card, options)


if __name__ == "__main__":
    main()
