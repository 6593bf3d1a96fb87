"""precedence_table: for each call of several types, who is asked, who refuses, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def precedence_table(report: Mapping[str, Any]) -> RenderableType:
    """Render the JSON of a `PrecedenceReport`: one row for each call."""
    table = Table("call", "asked", "comes out", box=box.SIMPLE_HEAD)
    for meeting in report["meetings"]:
        call = f"{meeting['function']}({', '.join(meeting['arguments'])})"
        style = "bold red" if meeting["raised"] else "green"
        table.add_row(call, _asked(meeting), Text(meeting["outcome"], style))
    return Group(Text(f"precedence of {', '.join(report['types'])}"), table)


def _asked(meeting: Mapping[str, Any]) -> Text:
    """Who was asked, from first to last; those that refused are dim."""
    words: list[tuple[str, str]] = []
    for each in meeting["asked"]:
        words.append((each["type"], "green") if each["answered"] else (f"{each['type']} (refuses)", "dim"))
    separated = [part for word in words for part in ((", then ", ""), word)][1:]
    return Text.assemble(*separated) if separated else Text("none")
