"""verdict_table: checks by rungs, then a line for each failed, skipped and left-out check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from opwright.report.figures import MISSING, error_beside

_STYLES = {"passed": "green", "failed": "bold red", "skipped": "dim"}
_NOT_A_CHECK, _KERNELS = "available", ("cpp", "cuda")


def verdict_table(verdict: Mapping[str, Any]) -> RenderableType:
    """Render the JSON of a `Verdict`.

    A cell counts the samples of a check: "6 passed", "FAILED 1 of 6", "not checked". Errors are the worst of all
    samples, followed by eager's on the same sample.
    """
    rows: Sequence[Mapping[str, Any]] = verdict["rows"]
    checked = [row for row in rows if row["check"] != _NOT_A_CHECK]
    missing = [Text(f"{row['rung']} is not here: {row['detail']}") for row in rows if row["check"] == _NOT_A_CHECK]
    return Group(
        _headline(verdict), _table(checked), *_failures(checked), *_unchecked(checked), *missing, *_left_out(verdict)
    )


def _headline(verdict: Mapping[str, Any]) -> Text:
    status = "passed" if verdict["passed"] else "failed"
    of_what = " the quick check" if verdict["quick"] else ""
    headline = Text(f"{verdict['subject']}: ").append(status.upper(), _STYLES[status]).append(of_what)
    if _has_no_kernel(verdict):
        headline.append("; it has no kernel: your function served every call", "yellow")
    return headline


def _has_no_kernel(verdict: Mapping[str, Any]) -> bool:
    """Whether kernels were looked for, and none was found."""
    looked_for = {row["rung"] for row in verdict["rows"] if row["check"] == _NOT_A_CHECK}
    return "cpp" in looked_for and not any(
        row["rung"] in _KERNELS and row["check"] != _NOT_A_CHECK for row in verdict["rows"]
    )


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
    return Text("not checked", _STYLES["skipped"]) if statuses else Text(MISSING)


def _worst_error(rows: Sequence[Mapping[str, Any]]) -> str:
    measured = [row for row in rows if row["error"] is not None]
    if not measured:
        return MISSING
    worst = max(measured, key=lambda row: float(row["error"]))
    return error_beside(worst["error"], worst["eager_error"])


def _failures(rows: Sequence[Mapping[str, Any]]) -> list[Text]:
    """Write one line for each check of a rung that failed."""
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["status"] == "failed":
            grouped.setdefault((row["rung"], row["check"]), []).append(row)
    return [_failure(alike) for alike in grouped.values()]


def _failure(alike: Sequence[Mapping[str, Any]]) -> Text:
    first, others = alike[0], len(alike) - 1
    place = ", ".join(filter(None, (first["rung"], first["check"], first["sample"])))
    more = f" (and {others} more)" if others else ""
    return Text.assemble(("failed", _STYLES["failed"]), f" {place}: {first['detail']}{more}")


def _unchecked(rows: Sequence[Mapping[str, Any]]) -> list[Text]:
    """Write one line for each skipped check and the reason, with the rungs if other rungs ran it."""
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row["status"] == "skipped":
            reasons.setdefault((row["check"], row["detail"]), {})[row["rung"]] = None
    lines = []
    for (check, reason), rungs in reasons.items():
        others = {row["rung"] for row in rows if row["check"] == check} - set(rungs)
        which = f", {'rung' if len(rungs) == 1 else 'rungs'} {' and '.join(rungs)}" if others else ""
        lines.append(Text.assemble(("not checked", _STYLES["skipped"]), f" {check}{which}: {reason}"))
    return lines


def _left_out(verdict: Mapping[str, Any]) -> list[Text]:
    left_out = [*verdict["left_out"], *(["all samples but the smallest"] if verdict["quick"] else [])]
    return [Text(f"left out: {', '.join(left_out)}", "dim")] if left_out else []
