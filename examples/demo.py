"""Derive the LLTM operator, check it quickly, measure it while you watch, and draw it: `make demo`."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

START_S = time.perf_counter()

import torch  # noqa: E402  (the clock starts before the imports, which take seconds)
from lltm import lltm_cell  # noqa: E402
from rich import box  # noqa: E402
from rich.console import Console, Group, RenderableType  # noqa: E402
from rich.live import Live  # noqa: E402
from rich.rule import Rule  # noqa: E402
from rich.spinner import Spinner  # noqa: E402
from rich.syntax import Syntax  # noqa: E402
from rich.table import Table  # noqa: E402
from rich.text import Text  # noqa: E402

import opwright  # noqa: E402
from opwright.benchmark import BenchReport  # noqa: E402
from opwright.checking import Verdict  # noqa: E402
from opwright.errors import DrawingMissing  # noqa: E402
from opwright.page import gather, render  # noqa: E402
from opwright.report.figures import microseconds, ratio  # noqa: E402
from opwright.report.verdict_table import verdict_table  # noqa: E402

SIZES = opwright.shapes("B 3*S", "B S", B=(16, 64, 256), S=(128, 128, 1024))
CONTENDERS = {"composed": "eager", "torch.compile": "compile", "cpp": "opwright"}
PAGE = Path("report.html")
PASSAGES = {"forward": "forward", "training": "forward and backward"}


def main() -> int:
    """Show everything; return what the process ends with: 1 if something is found wrong."""
    console = Console(highlight=False)
    show_function(console)
    derive(console)
    verdict = check(console)
    reports = measure(console)
    passed = verdict.passed and all(report.passed for report in reports)
    draw(console, verdict, reports)
    console.print(f"\nAll of it took {time.perf_counter() - START_S:.0f} s. Go on with")
    for command in ("explain", "source", "check", "bench", "audit"):
        console.print(f"  {program()} {command} examples/lltm.py:lltm_cell", style="bold")
    return 0 if passed else 1


def program() -> str:
    """How to call the command line from here: by its name, or by its path where the environment is not activated."""
    return "opwright" if shutil.which("opwright") else os.path.relpath(Path(sys.executable).with_name("opwright"))


def show_function(console: Console) -> None:
    """Show what a user writes."""
    console.print(Rule("1. A PyTorch function", align="left"))
    console.print(code(lltm_cell.source("composed"), "python"))


def derive(console: Console) -> None:
    """Build the kernels by calling the operator, and show what they are."""
    console.print()
    console.print(Rule("2. Its kernels, forward and backward", align="left"))
    gates, old_cell = next(iter(SIZES("cpu", torch.float32))).args
    started_s = time.perf_counter()
    with working(console, "the first call traces, derives and compiles"):
        hidden, cell = lltm_cell(gates.requires_grad_(), old_cell.requires_grad_())
        (hidden.sum() + cell.sum()).backward()
    console.print(f"The first call and its gradients took {time.perf_counter() - started_s:.1f} s.\n")
    sections = explained(lltm_cell.explain())
    for title in ("Forward", "Backward", "Saved for backward"):
        console.print(Text.assemble((title, "bold"), "\n", sections[title]))
        if title == "Forward":
            console.print(f"\nas C++ (all of it: {program()} source examples/lltm.py:lltm_cell)", style="dim")
            console.print(code(first_kernel(lltm_cell.source("cpp")), "cpp"))
        console.print()


def check(console: Console) -> Verdict:
    """Run the quick check, and show what it found."""
    console.print(Rule("3. Is it right?  opwright check --quick --dtype float32", align="left"))
    with working(console, "checking") as tell:
        verdict = lltm_cell.check(quick=True, dtypes=[torch.float32], progress=lambda what, *_: tell(what))
    console.print(verdict_table(verdict.to_json()))
    return verdict


def measure(console: Console) -> list[BenchReport]:
    """Race the operator against eager and torch.compile at three sizes."""
    console.print()
    console.print(Rule("4. Is it fast?  Times in µs, medians", align="left"))
    samples = [*SIZES("cpu", torch.float32)]
    reports: list[BenchReport] = []
    with Live(console=console, refresh_per_second=8) as live:
        for sample in samples:

            def tell(what: str, *_: int) -> None:
                live.update(Group(race_table(samples, reports), Spinner("dots", Text(what))))

            reports.append(lltm_cell_bench(sample, tell))
        live.update(race_table(samples, reports))
    return reports


def draw(console: Console, verdict: Verdict, reports: Sequence[BenchReport]) -> None:
    """Write all of it as a page: with graphs, formulas and plots."""
    bench = replace(reports[0], entries=tuple(entry for report in reports for entry in report.entries))
    samples = [*SIZES("cpu", torch.float32)]
    try:
        facts = gather(lltm_cell, samples, verdict=verdict.to_json(), bench=bench.to_json())
        PAGE.write_text(render(facts.to_json()), encoding="utf-8")
    except DrawingMissing as missing:
        console.print(f"\nNo page is drawn: {missing}")
    else:
        console.print(f"\nAll of this as a page, with graphs, formulas and plots: {PAGE.resolve()}")


def lltm_cell_bench(sample: opwright.Sample, tell: Callable[..., None]) -> BenchReport:
    """Measure one size."""
    return opwright.bench(lltm_cell, samples=lambda device, dtype: [sample], progress=tell)


def race_table(samples: Sequence[opwright.Sample], reports: Sequence[BenchReport]) -> Table:
    """Show what has been measured so far, and how much faster the operator is than the better of the others."""
    table = Table("size", "", *CONTENDERS.values(), "faster", box=box.SIMPLE_HEAD)
    for column in table.columns[2:]:
        column.justify = "right"
    for index, sample in enumerate(samples):
        report = reports[index] if index < len(reports) else None
        for passage, words in PASSAGES.items():
            first = passage == next(iter(PASSAGES))
            table.add_row(sample.name if first else "", words, *race_cells(report, passage))
    return table


def race_cells(report: BenchReport | None, passage: str) -> list[str]:
    """Write the times of the contenders, and the speed-up over the better of the first two."""
    if report is None:
        return ["…"] * (len(CONTENDERS) + 1)
    timings = {entry.contender: getattr(entry, passage) for entry in report.entries}
    times = [timings[name].median_us if timings.get(name) else None for name in CONTENDERS]
    *others, own = times
    known = [each for each in others if each is not None]
    return [*map(microseconds, times), ratio(min(known) / own if known and own else None)]


def explained(text: str) -> dict[str, str]:
    """Take an explanation apart by the titles of its sections."""
    return dict(section.split("\n", 1) for section in text.split("\n\n") if "\n" in section)


def first_kernel(source: str) -> str:
    """The first function of an emitted source, with the formulas above it."""
    found = re.search(r"(^//[^\n]*\n)*^static void .*?^}\n", source, re.MULTILINE | re.DOTALL)
    return found[0] if found else source


def code(text: str, language: str) -> RenderableType:
    """Colour a piece of code."""
    return Syntax(text.strip(), language, theme="ansi_dark", background_color="default", word_wrap=True)


@contextmanager
def working(console: Console, subject: str) -> Iterator[Callable[[str], None]]:
    """Turn a spinner while something is under way; yields a function that says what exactly."""
    with console.status(subject) as status:
        yield lambda what: status.update(f"{subject}: {what}")


if __name__ == "__main__":
    sys.exit(main())
