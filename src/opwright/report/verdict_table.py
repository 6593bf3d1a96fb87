"""verdict_table: checks by rungs, and below it what failed and what was skipped, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from opwright.report.figures import MISSING, error_beside

_STYLES = {"passed": "green", "failed": "bold red", "skipped": "yellow"}
_NOT_A_CHECK = "available"


def verdict_table(verdict: Mapping[str, Any]) -> RenderableType:
    """Render the JSON of a `Verdict`.

    A cell counts the samples of a check: "6 passed", "FAILED 1 of 6", "skipped". Errors are the worst of all samples,
    with eager's own on the same sample behind it.
    """
    rows: Sequence[Mapping[str, Any]] = verdict["rows"]
    return Group(_headline(verdict), _table([row for row in rows if row["check"] != _NOT_A_CHECK]), *_remarks(rows))


def _headline(verdict: Mapping[str, Any]) -> Text:
    status = "passed" if verdict["passed"] else "failed"
    return Text(f"{verdict['subject']}: ").append(status.upper(), _STYLES[status])


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    rungs = list(dict.fromkeys(row["rung"] for row in rows))
    table = Table("check", *rungs, "worst error (eager's)", box=box.SIMPLE_HEAD)
    for check in dict.fromkeys(row["check"] for row in rows):
        of_check = [row for row in rows if row["check"] == check]
        cells = [_cell([row["status"] for row in of_check if row["rung"] == rung]) for rung in rungs]
        table.add_row(check, *cells, _worst_error(of_check))
    return table


def _cell(statuses: Sequence[str]) -> Text:
    counts = Counter(statuses)
    if counts["failed"]:
        return Text(f"FAILED {counts['failed']} of {len(statuses)}", _STYLES["failed"])
    if counts["passed"]:
        return Text(f"{counts['passed']} passed", _STYLES["passed"])
    return Text("skipped", _STYLES["skipped"]) if statuses else Text(MISSING)


def _worst_error(rows: Sequence[Mapping[str, Any]]) -> str:
    measured = [row for row in rows if row["error"] is not None]
    if not measured:
        return MISSING
    worst = max(measured, key=lambda row: float(row["error"]))
    return error_beside(worst["error"], worst["eager_error"])


def _remarks(rows: Sequence[Mapping[str, Any]]) -> list[Text]:
    """Write one line for each check of a rung that failed, then one for each that was skipped."""
    grouped: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["status"], row["rung"], row["check"]), []).append(row)
    return [_remark(grouped[key]) for key in sorted(grouped, key=lambda key: key[0]) if key[0] != "passed"]


def _remark(alike: Sequence[Mapping[str, Any]]) -> Text:
    first, others = alike[0], len(alike) - 1
    place = ", ".join(filter(None, (first["rung"], first["check"], first["sample"])))
    more = f" (and {others} more)" if others else ""
    return Text.assemble((first["status"], _STYLES[first["status"]]), f" {place}: {first['detail']}{more}")
