"""`--record-sweeps`: record the results of nightly sweeps and their commit in docs/sweeps.json, and docs/sweeps.md.

A sweep is a nightly test with all its cases. Its record is that of the last run, even if that ran only some cases.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch

RECORD, PAGE = "docs/sweeps.json", "docs/sweeps.md"
BEGIN, END = "<!-- from sweeps.json, by pytest -m nightly --record-sweeps -->", "<!-- end -->"
_OUTCOMES = ("passed", "failed", "skipped")

Record = dict[str, dict[str, Any]]


class SweepRecord:
    """A plugin that records the outcomes of nightly tests.

    Args:
        repository: Where the record and the page are.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._sweep_of: dict[str, str] = {}
        self._ended: dict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Count the cases, before any are deselected."""
        for item in items:
            if item.get_closest_marker("nightly"):
                self._sweep_of[item.nodeid] = item.nodeid.partition("[")[0]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the outcome of a case; a passed setup or teardown does not count."""
        sweep = self._sweep_of.get(report.nodeid)
        if sweep is None:
            return
        self._seconds[sweep] += report.duration
        if report.when == "call" or not report.passed:
            self._ended[sweep][report.outcome] += 1

    def pytest_sessionfinish(self) -> None:
        """Write the results, replacing earlier ones of the same sweeps."""
        if not self._ended:
            return
        path, page = self._repository / RECORD, self._repository / PAGE
        record: Record = json.loads(path.read_text()) if path.exists() else {}
        cases, here = Counter(self._sweep_of.values()), where(self._repository)
        for sweep, ended in self._ended.items():
            counts = {outcome: ended[outcome] for outcome in _OUTCOMES}
            record[sweep] = {**counts, "of": cases[sweep], "seconds": round(self._seconds[sweep]), **here}
        path.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
        page.write_text(with_table(page.read_text(), record))


def where(repository: Path) -> dict[str, Any]:
    """The commit, the date, and the versions."""
    return {
        "commit": _git(repository, "rev-parse", "--short=12", "HEAD"),
        "changed": bool(_git(repository, "status", "--porcelain", "--", "src", "tests")),
        "date": datetime.now(UTC).date().isoformat(),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "gpu": torch.cuda.is_available(),
    }


def with_table(page: str, record: Record) -> str:
    """Replace the table of a page, between two marks, by that of a record."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(record)}\n{END}{after}"


def table(record: Record) -> str:
    """A row for each sweep: its results, and the commit."""
    lines = ["| sweep | ran | failed | skipped | commit | on | torch |", "|---|---|---|---|---|---|---|"]
    for sweep, ran in sorted(record.items()):
        count = sum(ran[outcome] for outcome in _OUTCOMES)
        commit = f"{ran['commit']} with changes" if ran["changed"] else ran["commit"]
        shown = (
            f"`{sweep}`",
            f"{count} of {ran['of']}",
            ran["failed"],
            ran["skipped"],
            commit,
            ran["date"],
            ran["torch"],
        )
        lines.append(f"| {' | '.join(map(str, shown))} |")
    return "\n".join(lines)


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=False)
    return done.stdout.strip()
