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


def test_a_prompt_shows_the_table_and_a_notebook_too():
    verdict = Verdict("cell", (PASSED, FAILED, SKIPPED))
    assert repr(verdict) == str(verdict)
    first, *_, failed, missing = repr(verdict).splitlines()
    assert first == "cell: FAILED"
    assert failed == "failed cpp, layouts, B=4 float32: input 0 sliced: result 0 is wrong"
    assert missing == "cuda is not here: there is no GPU here"
    page = verdict._repr_html_()
    assert page.startswith("<pre")
    assert "FAILED</span>" in page
    assert "input 0 sliced: result 0 is wrong" in page


def test_json_is_strict_and_complete():
    written = json.loads(json.dumps(Verdict("cell", (PASSED, FAILED)).to_json(), allow_nan=False))
    assert written["subject"] == "cell"
    assert (written["passed"], written["quick"], written["left_out"]) == (False, False, [])
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
