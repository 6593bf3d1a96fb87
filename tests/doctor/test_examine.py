from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opwright.doctor import Examination, Finding, examine
from opwright.doctor.findings import table
from opwright.settings import Settings

FOLDER = Path(table.__file__).parent


def test_every_file_of_findings_is_in_the_table() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "table"}

    assert [look.__name__ for look in table.FINDINGS] == [look.__module__.rpartition(".")[2] for look in table.FINDINGS]
    assert {look.__name__ for look in table.FINDINGS} == files


@pytest.mark.parametrize(("state", "passed"), [("works", True), ("limited", True), ("broken", False)])
def test_only_what_is_broken_fails(state: str, passed: bool) -> None:
    examination = Examination((Finding("one", "works", ""), Finding("other", state, "")))

    assert examination.passed == examination.to_json()["passed"] == passed


def test_a_machine_without_a_compiler_is_said_to_be_broken(tmp_path: Path) -> None:
    steps = []
    examination = examine(
        replace(Settings(tmp_path / "cache"), compiler="/no/such/compiler"), progress=lambda *step: steps.append(step)
    )
    states = {finding.name: finding.state for finding in examination.findings}

    assert not examination.passed
    assert (states["C++ compiler"], states["a kernel"], states["cache"]) == ("broken", "broken", "works")
    assert [step[1:] for step in steps] == [(done, len(table.FINDINGS)) for done in range(len(table.FINDINGS))]


@pytest.mark.nightly
def test_a_broken_cache_hides_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    examination = examine(Settings(tmp_path / "cache"))

    assert [finding.name for finding in examination.findings if finding.state == "broken"] == ["cache"]
