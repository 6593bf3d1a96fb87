"""coverage_table: how many functions a type serves and how, then what is wrong, disagrees, and fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_STYLES = {
    "handled": "green",
    "by rule": "green",
    "fallback": "yellow",
    "fails": "yellow",
    "wrong": "bold red",
    "not tried": "dim",
}
_REMARKS = (
    ("wrong", "detail", "bold red"),
    ("disagrees", "disagrees", "bold red"),
    ("signature", "signature", "bold red"),
)


def coverage_table(report: Mapping[str, Any]) -> RenderableType:
    """Render the JSON of a `CoverageReport`: counts by namespace, faults one by one, failures by what they say."""
    entries: Sequence[Mapping[str, Any]] = report["entries"]
    return Group(_headline(report), _table(entries), *_faults(entries), *_failures(entries))


def _headline(report: Mapping[str, Any]) -> Text:
    counts = report["counts"]
    summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    status, style = ("PASSED", "green") if report["passed"] else ("FAILED", "bold red")
    return Text.assemble(f"{report['subject']}: ", (status, style), f" ({summary})")


def _table(entries: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("functions of", *_STYLES, box=box.SIMPLE_HEAD)
    places: dict[str, Counter[str]] = {}
    for entry in entries:
        place = entry["name"].removesuffix(".__get__").rpartition(".")[0]
        places.setdefault("aten" if place.startswith("aten.") else place, Counter())[entry["how"]] += 1
    for place, counts in places.items():
        table.add_row(place, *(Text(str(counts[how] or ""), style) for how, style in _STYLES.items()))
    return table


def _faults(entries: Sequence[Mapping[str, Any]]) -> list[Text]:
    return [
        Text.assemble((word, style), f" {entry['name']}: {entry[key]}")
        for word, key, style in _REMARKS
        for entry in entries
        if (entry["how"] == "wrong" if word == "wrong" else entry[key])
    ]


def _failures(entries: Sequence[Mapping[str, Any]]) -> list[Text]:
    """Write one line for each kind of exception."""
    groups: dict[str, list[str]] = {}
    for entry in entries:
        if entry["how"] == "fails":
            groups.setdefault(entry["detail"].partition(":")[0], []).append(entry["name"])
    return [
        Text.assemble(("fails", _STYLES["fails"]), f" {said}: {', '.join(names[:6])}{_more(names)}")
        for said, names in groups.items()
    ]


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 6} more" if len(names) > 6 else ""
