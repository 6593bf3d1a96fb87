import json

import pytest

from opwright.checking import Row, Verdict

PASSED = Row("cpp", "values", "B=4 float32", "passed", error=1e-7, eager_error=2e-7)
FAILED = Row("cpp", "layouts", "B=4 float32", "failed", "input 0 sliced: result 0 is wrong", float("inf"))
SKIPPED = Row("cuda", "available", "", "skipped", "there is no GPU here")


@pytest.mark.parametrize(
    ("rows", "passed"),
    [((PASSED,), True), ((PASSED, SKIPPED), True), ((PASSED, FAILED), False), ((SKIPPED,), False), ((), False)],
)
def test_a_verdict_passes_if_something_was_checked_and_nothing_failed(rows, passed):
    assert Verdict("cell", rows).passed is passed


def test_a_verdict_reads_as_a_sentence_and_what_did_not_pass():
    assert str(Verdict("cell", (PASSED, FAILED, SKIPPED))).splitlines() == [
        "cell: FAILED (1 passed, 1 failed, 1 skipped)",
        "  failed: cpp, layouts, B=4 float32: input 0 sliced: result 0 is wrong",
        "  skipped: cuda, available: there is no GPU here",
    ]


def test_json_is_strict_and_complete():
    written = json.loads(json.dumps(Verdict("cell", (PASSED, FAILED)).to_json(), allow_nan=False))
    assert written["subject"] == "cell"
    assert written["passed"] is False
    assert written["rows"][0] == {
        "rung": "cpp",
        "check": "values",
        "sample": "B=4 float32",
        "status": "passed",
        "detail": "",
        "error": 1e-7,
        "eager_error": 2e-7,
    }
    assert written["rows"][1]["error"] is None
