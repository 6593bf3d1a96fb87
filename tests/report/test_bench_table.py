import io

import pytest
from rich.console import Console

from opwright.benchmark import BenchReport, Entry
from opwright.benchmark.machine import Machine
from opwright.benchmark.stopwatch import Timing
from opwright.report.bench_table import bench_table

MACHINE = Machine("A Processor", 2, 1, "2.13.0", "3.11.7", None, None, "2026-01-01T00:00:00+00:00")


def timing(median_us):
    return Timing(median_us, median_us, median_us, 15)


REPORT = BenchReport(
    "cell",
    "float32",
    "cpu",
    MACHINE,
    (
        Entry("B=64 S=128", "composed", "measured", "", timing(40.0), timing(1200.0), 1e-7, 1e-7, 2e-7, 2e-7),
        Entry("B=64 S=128", "function", "absent", "NoKernel: [float32] has no kernel"),
        Entry("B=64 S=128", "cpp", "measured", "", timing(5.0), timing(300.0), 1.5e-7, 1e-7, 1e-8, 2e-7),
        Entry("B=64 S=128", "torch.compile", "measured", "", timing(20.0), timing(600.0), 0.0, 1e-7, 0.0, 2e-7),
        Entry("B=1 S=1", "composed", "wrong", "its timing is void", error=0.5, eager_error=1e-7),
    ),
    {"cuda": "there is no GPU here"},
)


def lines(width=100):
    stream = io.StringIO()
    Console(file=stream, width=width).print(bench_table(REPORT.to_json()))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    "line",
    [
        "cell, float32 on cpu; times in µs, medians ± quartiles",
        "rung forward vs eager vs compile fwd+bwd vs eager vs compile error (eager's)",
        "composed 40.0 1.00× 0.50× 1,200 1.00× 0.50× 2.0e-07 (2.0e-07)",
        "function ABSENT – – – – – – –",
        "cpp 5.00 8.00× 4.00× 300 4.00× 2.00× 1.5e-07 (1.0e-07)",
        "torch.compile 20.0 2.00× 1.00× 600 2.00× 1.00× 0 (2.0e-07)",
        "composed WRONG – – – – – – 5.0e-01 (1.0e-07)",
        "function, B=64 S=128: NoKernel: [float32] has no kernel",
        "composed, B=1 S=1: its timing is void",
        "cuda: not here: there is no GPU here",
        "A Processor; 2 cores; 1 torch threads; torch 2.13.0; python 3.11.7; no C++ compiler;",
    ],
)
def test_every_fact_is_there_in_words(line):
    assert line in [" ".join(each.split()) for each in lines()]


def test_a_hundred_columns_are_enough():
    rows = [line for line in lines() if line.split()[:1] == ["torch.compile"]]
    assert len(rows) == 1
    assert max(map(len, lines())) <= 100


@pytest.mark.parametrize(
    ("low", "high", "shown", "warns"),
    [(99, 101, "100", False), (93, 107, "100 ±7%", False), (80, 125, "100 ±22%", True)],
)
def test_spreads_are_shown_and_wide_ones_warned_of(low, high, shown, warns):
    entry = Entry("B=1", "cpp", "measured", "", Timing(100.0, low, high, 15), None)
    stream = io.StringIO()
    report = BenchReport("cell", "float32", "cpu", MACHINE, (entry,))
    Console(file=stream, width=100).print(bench_table(report.to_json()))
    text = " ".join(stream.getvalue().split())
    assert f"cpp {shown} –" in text
    assert ("within 45% of its median, as on a busy machine" in text) is warns
