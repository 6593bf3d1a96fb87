"""audit_table: a scorecard by families, with passed rows counted and all others described."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_STYLES = {
    "pass": "green",
    "raises": "bold red",
    "silently wrong": "bold red",
    "torch itself raises": "yellow",
    "skipped": "yellow",
}
_REMARKED = ("silently wrong", "raises", "torch itself raises", "skipped")


def audit_table(scorecard: Mapping[str, Any]) -> RenderableType:
    """Render the JSON of a `Scorecard`: each row with its state, then the differences and reasons."""
    rows: Sequence[Mapping[str, Any]] = scorecard["rows"]
    return Group(_headline(scorecard, rows), _table(rows), *_remarks(rows))


def _headline(scorecard: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Text:
    counts = Counter(row["state"] for row in rows)
    summary = ", ".join(f"{counts[state]} {state}" for state in _STYLES if counts[state])
    status, style = ("PASSED", "green") if scorecard["passed"] else ("FAILED", "bold red")
    return Text.assemble(f"{scorecard['subject']}: ", (status, style), f" ({summary})")


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("family", "row", "state", box=box.SIMPLE_HEAD)
    family = None
    for row in rows:
        shown = row["family"] if row["family"] != family else ""
        table.add_row(shown, row["name"], Text(row["state"], _STYLES[row["state"]]))
        family = row["family"]
    return table


def _remarks(rows: Sequence[Mapping[str, Any]]) -> list[Text]:
    """Write the red rows first."""
    return [
        Text.assemble((state, _STYLES[state]), f" {row['family']}, {row['name']}: {row['detail']}")
        for state in _REMARKED
        for row in rows
        if row["state"] == state
    ]
