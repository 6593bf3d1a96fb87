"""Scorecard: what a benchmark found, as a table for people and as JSON."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from opwright.benchmark.machine import this_machine
from opwright.benchmark.stopwatch import Plan, Thunk, interleave

os.environ.setdefault("OPWRIGHT_TAPE", "now")  # what is measured is a machine that has it, from the first call on
_TINY = Plan(slice_ns=100_000, fewest_rounds=3, most_rounds=3)
_WIDTH_OF_A_FILE = 120
_CALLS_BEFORE = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One line of figures; None where there is no figure."""

    name: str
    figures: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that is to be at least, or at most, a bound."""

    what: str
    value: float
    relation: Literal[">=", "<="]
    bound: float
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the figure is where it should be."""
        return self.value >= self.bound if self.relation == ">=" else self.value <= self.bound

    def __str__(self) -> str:
        verdict = "met" if self.met else "MISSED"
        return (
            f"{verdict}: {self.what}: {self.value:.3g}{self.unit} (target {self.relation} {self.bound:.3g}{self.unit})"
        )


@dataclass(frozen=True, slots=True)
class Scorecard:
    """The result of one benchmark."""

    title: str
    rows: Sequence[Row]
    targets: Sequence[Target]

    def to_json(self) -> dict[str, Any]:
        """Return it as values that `json.dumps` takes."""
        targets = [asdict(target) | {"met": target.met} for target in self.targets]
        return {"title": self.title, "rows": [asdict(row) for row in self.rows], "targets": targets}


@dataclass(frozen=True, slots=True)
class Options:
    """How a benchmark is run.

    Attributes:
        quick: A few repetitions, and no peer that takes seconds to start: to see that it runs.
        without_compile: No `torch.compile` among the peers.
        processor_time: Measure the time of the processor, for a machine that others use at the same time.
    """

    quick: bool = False
    without_compile: bool = False
    processor_time: bool = False

    @property
    def plan(self) -> Plan:
        """How long the stopwatch measures."""
        return _TINY if self.quick else Plan()

    @property
    def clock(self) -> Callable[[], int]:
        """What the stopwatch reads."""
        return time.process_time_ns if self.processor_time else time.perf_counter_ns


def medians_us(ways: Mapping[str, Thunk], options: Options) -> dict[str, float]:
    """Time several ways in turns, each after a few calls that compile, load and warm what it needs."""
    for way in ways.values():
        for _ in range(_CALLS_BEFORE):
            way()
    return {name: timing.median_us for name, timing in interleave(ways, plan=options.plan, clock=options.clock).items()}


def geometric_mean(ratios: Sequence[float]) -> float:
    """Average ratios so that 2 and 1/2 give 1."""
    return exp(sum(map(log, ratios)) / len(ratios))


def run_script(measure: Callable[[Options], Scorecard | Sequence[Scorecard]], description: str | None) -> None:
    """Run a benchmark as its command line says: print its tables, and write JSON if asked.

    Args:
        measure: Does the work.
        description: The first paragraph is shown by --help.
    """
    parser = argparse.ArgumentParser(description=(description or "").partition("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    parser.add_argument("--quick", action="store_true", help="only see that it runs; the figures mean nothing")
    parser.add_argument(
        "--without-compile", action="store_true", help="leave torch.compile out where it is one of the peers"
    )
    parser.add_argument("--processor-time", action="store_true", help="measure processor time, on a machine in use")
    given = parser.parse_args()
    found = measure(Options(given.quick, given.without_compile, given.processor_time))
    cards = [found] if isinstance(found, Scorecard) else list(found)
    machine = asdict(this_machine())
    console = Console()
    console = console if console.is_terminal else Console(width=_WIDTH_OF_A_FILE)
    console.print(Group(*map(render, cards), Text(", ".join(f"{k} {v}" for k, v in machine.items() if v), "dim")))
    if given.json:
        record = {"machine": machine, "quick": given.quick, "benchmarks": [card.to_json() for card in cards]}
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def render(card: Scorecard) -> RenderableType:
    """Show a scorecard as a table with its targets below."""
    table = Table(title=Text(card.title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    columns = list(dict.fromkeys(column for row in card.rows for column in row.figures))
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    for row in card.rows:
        table.add_row(row.name, *(_figure(row.figures.get(column)) for column in columns))
    return Group(table, *(Text(str(target), "" if target.met else "bold red") for target in card.targets), Text())


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
