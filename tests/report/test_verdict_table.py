import io

import pytest
from rich.console import Console

from opwright.checking import Row, Verdict
from opwright.report.verdict_table import verdict_table

VERDICT = Verdict(
    "cell",
    (
        Row("cuda", "available", "", "skipped", "there is no GPU here"),
        Row("cpp", "values", "B=4 float32", "passed", "", 1.2e-7, 2e-7),
        Row("cpp", "values", "B=4 float64", "passed", "", 0.0, 0.0),
        Row("cpp", "layouts", "B=4 float32", "failed", "input 0 sliced: output [0] is wrong", 0.5, None),
        Row("cpp", "layouts", "B=4 float64", "failed", "input 1 sliced: output [1] is wrong", 0.25, None),
        Row("operator", "values", "B=4 float32", "passed", "", 3e-7, 4e-7),
        Row("operator", "opcheck", "B=4 float32", "skipped", "it is not an operator of torch.ops"),
        Row("cpp", "errors", "B=4 float32", "skipped", "your function serves such calls"),
        Row("cpp", "errors", "B=4 float64", "skipped", "your function serves such calls"),
        Row("function", "errors", "B=4 float32", "skipped", "your function serves such calls"),
        Row("operator", "errors", "B=4 float32", "passed"),
    ),
)


def rendered(verdict, width=100, **options):
    stream = io.StringIO()
    Console(file=stream, width=width, **options).print(verdict_table(verdict.to_json()))
    return stream.getvalue()


def words(line):
    return " ".join(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "cell: FAILED",
        "check cpp operator function worst error (eager's)",
        "values 2 passed 1 passed – 3.0e-07 (4.0e-07)",
        "layouts FAILED 2 of 2 – – 5.0e-01 (–)",
        "opcheck – not checked – –",
        "failed cpp, layouts, B=4 float32: input 0 sliced: output [0] is wrong (and 1 more)",
        "cuda is not here: there is no GPU here",
        "not checked opcheck: it is not an operator of torch.ops",
        "not checked errors, rungs cpp and function: your function serves such calls",
    ],
)
def test_without_colour_everything_is_said_in_words(line):
    assert line in [words(each) for each in rendered(VERDICT).splitlines()]


def test_colour_adds_no_words():
    plain = rendered(VERDICT)
    coloured = rendered(VERDICT, force_terminal=True, color_system="standard")
    assert coloured != plain
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[32m", "\x1b[2m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


def test_failures_come_first():
    remarks = [line.split()[0] for line in rendered(VERDICT).splitlines() if line.startswith(("failed", "not", "cuda"))]
    assert remarks == ["failed", "not", "not", "cuda"]


def test_a_quick_check_is_told_apart():
    shown = rendered(Verdict("cell", VERDICT.rows[1:3], ("gradcheck", "opcheck"), quick=True)).splitlines()
    assert shown[0] == "cell: PASSED the quick check"
    assert shown[-1] == "left out: gradcheck, opcheck, all samples but the smallest"


def test_a_passed_verdict_says_so():
    assert rendered(Verdict("cell", VERDICT.rows[1:3])).splitlines()[0] == "cell: PASSED"


def test_the_first_line_tells_that_no_kernel_served():
    rows = (
        Row("operator", "values", "B=4 float32", "passed", "", 0.0, 0.0),
        Row("cpp", "available", "", "skipped", "cell looks at the values of a tensor"),
        Row("cuda", "available", "", "skipped", "there is no GPU here"),
    )
    first = rendered(Verdict("cell", rows, quick=True)).splitlines()[0]
    assert first.rstrip() == "cell: PASSED the quick check; it has no kernel: your function served every call"
    with_kernel = (Row("cpp", "values", "B=4 float32", "passed", "", 0.0, 0.0), rows[2])
    assert "no kernel" not in rendered(Verdict("cell", with_kernel))
