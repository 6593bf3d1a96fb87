"""What the record of sweeps holds after a run, and that the page shows the record."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.suite.sweep_record import BEGIN, END, PAGE, RECORD, SweepRecord, with_table

REPOSITORY = Path(__file__).parents[2]
SWEEPS = """
    import pytest

    @pytest.mark.nightly
    @pytest.mark.parametrize("case", range(5))
    def test_long(case):
        if case == 1: pytest.skip("not here")
        assert case != 2

    @pytest.mark.parametrize("case", ["day", pytest.param("night", marks=pytest.mark.nightly)])
    def test_some(case): pass

    @pytest.fixture
    def broken(): raise ValueError

    @pytest.mark.nightly
    def test_broken(broken): pass

    def test_by_day(): pass
"""


def recorded(pytester: pytest.Pytester, *options: str) -> dict[str, tuple[int, ...]]:
    """What is recorded of each sweep: passed, failed, skipped, and how many cases there are."""
    pytester.makeini("[pytest]\nmarkers = nightly")
    pytester.makepyfile(test_sweeps=SWEEPS)
    (pytester.path / "docs").mkdir(exist_ok=True)
    page = pytester.path / PAGE
    if not page.exists():
        page.write_text(f"before\n{BEGIN}\n{END}\nafter")
    quick = ("-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception")
    pytester.runpytest_inprocess(*quick, *options, plugins=[SweepRecord(pytester.path)])
    record = json.loads((pytester.path / RECORD).read_text())
    assert page.read_text() == with_table(f"before\n{BEGIN}{END}\nafter", record)
    return {
        sweep.partition("::")[2]: (ran["passed"], ran["failed"], ran["skipped"], ran["of"])
        for sweep, ran in record.items()
    }


def test_how_each_sweep_ended(pytester: pytest.Pytester) -> None:
    all_sweeps = {"test_long": (3, 1, 1, 5), "test_some": (1, 0, 0, 1), "test_broken": (0, 1, 0, 1)}
    assert recorded(pytester) == all_sweeps
    some = recorded(pytester, "-k", "test_long and (3 or 4)")
    assert some == all_sweeps | {"test_long": (2, 0, 0, 5)}


def test_on_which_commit_and_whether_there_were_changes(pytester: pytest.Pytester) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=pytester.path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit_and_changed() -> tuple[str, bool]:
        recorded(pytester, "-k", "test_some")
        ((_, ran),) = json.loads((pytester.path / RECORD).read_text()).items()
        return ran["commit"], ran["changed"]

    (pytester.path / "src").mkdir()
    source = pytester.path / "src" / "a.py"
    source.write_text("1")
    git("init")
    git("add", "--all")
    git("commit", "--message", "a")
    head = git("rev-parse", "--short=12", "HEAD")
    assert commit_and_changed() == (head, False)
    source.write_text("2")
    assert commit_and_changed() == (head, True)


def test_the_page_shows_the_record() -> None:
    page = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    record = json.loads((REPOSITORY / RECORD).read_text(encoding="utf-8"))
    assert with_table(page, record) == page, "run the sweep again, or write the table from the record"


def test_recorded_sweeps_are_tests_of_today() -> None:
    record = json.loads((REPOSITORY / RECORD).read_text(encoding="utf-8"))
    for sweep in record:
        file, _, name = sweep.partition("::")
        assert f"def {name}(" in (REPOSITORY / file).read_text(encoding="utf-8"), sweep
