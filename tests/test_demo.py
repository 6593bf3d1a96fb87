"""The parts of `make demo` that could go wrong without a word."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console

from opwright.benchmark import BenchReport, Entry
from opwright.benchmark.machine import Machine
from opwright.benchmark.stopwatch import Timing
from opwright.checking import Row, Verdict

EXAMPLES = Path(__file__).parents[1] / "examples"
MACHINE = Machine("A Processor", 2, 1, "2.13.0", "3.11.7", None, None, "2026-01-01T00:00:00+00:00")


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for name in ("demo", "lltm"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import demo

    yield demo
    for name in ("demo", "lltm"):
        sys.modules.pop(name, None)


def timing(median_us: float) -> Timing:
    return Timing(median_us, median_us, median_us, 15)


def test_the_kernel_and_the_sections_are_found(demo) -> None:
    kernel = demo.first_kernel(demo.lltm_cell.source("cpp"))
    assert kernel.splitlines()[0].startswith("//   ")
    assert "for (" in kernel
    assert kernel.count("\n}\n") == 1
    assert {"Forward", "Backward", "Saved for backward"} <= set(demo.explained(demo.lltm_cell.explain()))


def test_the_table_fills_up_and_compares_with_the_better_of_the_others(demo) -> None:
    sample, other, _ = demo.SIZES("cpu", torch.float32)
    entries = (
        Entry(sample.name, "composed", "measured", "", timing(40.0), timing(100.0)),
        Entry(sample.name, "torch.compile", "measured", "", timing(20.0), timing(200.0)),
        Entry(sample.name, "cpp", "measured", "", timing(10.0), None),
    )
    console = Console(file=io.StringIO(), width=100)
    console.print(demo.race_table([sample, other], [BenchReport("cell", "float32", "cpu", MACHINE, entries)]))
    rows = [line.split() for line in console.file.getvalue().splitlines()]
    assert ["B=16", "S=128", "forward", "40.0", "20.0", "10.0", "2.00×"] in rows
    assert ["forward", "and", "backward", "100", "200", "–", "–"] in rows
    assert ["B=64", "S=128", "forward", "…", "…", "…", "…"] in rows


def test_the_race_shows_every_size(demo, monkeypatch: pytest.MonkeyPatch) -> None:
    def raced(sample, tell) -> BenchReport:
        tell("time forward")
        entry = Entry(sample.name, "cpp", "measured", "", timing(7.0), None)
        return BenchReport("cell", "float32", "cpu", MACHINE, (entry,))

    monkeypatch.setattr(demo, "lltm_cell_bench", raced)
    console = Console(file=io.StringIO(), width=100)
    reports = demo.measure(console)
    sizes = [sample.name for sample in demo.SIZES("cpu", torch.float32)]
    assert [report.entries[0].sample for report in reports] == sizes
    assert all(size in console.file.getvalue() for size in sizes)


def test_the_page_holds_what_was_found_and_measured(demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PAGE", tmp_path / "report.html")
    reports = [
        BenchReport("cell", "float32", "cpu", MACHINE, (Entry(sample.name, "cpp", "measured", "", timing(7.0), None),))
        for sample in demo.SIZES("cpu", torch.float32)
    ]
    verdict = Verdict("cell", (Row("operator", "values", "B=16", "passed"),))
    console = Console(file=io.StringIO(), width=400)
    demo.draw(console, verdict, reports)
    assert str(tmp_path / "report.html") in console.file.getvalue()
    page = (tmp_path / "report.html").read_text()
    for sample in demo.SIZES("cpu", torch.float32):
        assert sample.name in page
    assert "<math" in page
    assert page.count("<svg") > 2
