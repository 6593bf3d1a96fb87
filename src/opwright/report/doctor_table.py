"""doctor_table: subjects with state and details, then the commands that fix what does not work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_STYLES = {"works": "green", "limited": "yellow", "broken": "bold red"}


def doctor_table(examination: Mapping[str, Any]) -> RenderableType:
    """Render the JSON of an `Examination`."""
    findings: Sequence[Mapping[str, Any]] = examination["findings"]
    return Group(_headline(examination), _table(findings), *_remedies(findings))


def _headline(examination: Mapping[str, Any]) -> Text:
    broken = [finding["name"] for finding in examination["findings"] if finding["state"] == "broken"]
    if not broken:
        return Text.assemble("this machine: ", ("WORKS", _STYLES["works"]))
    return Text.assemble("this machine: ", ("BROKEN", _STYLES["broken"]), f" ({', '.join(broken)})")


def _table(findings: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("what", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("details", overflow="fold")
    for finding in findings:
        table.add_row(finding["name"], Text(finding["state"], _STYLES[finding["state"]]), Text(finding["detail"]))
    return table


def _remedies(findings: Sequence[Mapping[str, Any]]) -> list[Text]:
    """Write the command of each finding that has one, on a line that can be copied; broken findings first."""
    mendable = [finding for finding in findings if finding["remedy"]]
    ordered = sorted(mendable, key=lambda finding: finding["state"] != "broken")
    return [
        Text.assemble(
            ("mend ", _STYLES[finding["state"]]),
            f"{finding['name']}: ",
            (finding["remedy"], "bold"),
            no_wrap=True,
            overflow="ignore",
        )
        for finding in ordered
    ]
