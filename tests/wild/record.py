"""`--record-sweeps`: which models of others kernels serve, in docs/wild.json and in the table of docs/wild.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.suite.sweep_record import where

RECORD, PAGE = "docs/wild.json", "docs/wild.md"
BEGIN, END = "<!-- from wild.json, by pytest -m nightly --record-sweeps tests/wild -->", "<!-- end -->"
WHOLE, IN_PART, NOTHING = "whole", "in part", "nothing"


def how_served(told: str) -> dict[str, Any]:
    """What `explain()` tells of a model: whether kernels serve all of it, and how many modules have kernels."""
    first, *_ = lines = told.splitlines()
    parts = sum("kernels: " in line for line in lines)
    return {"served": WHOLE if "kernels: " in first else IN_PART if parts else NOTHING, "parts": parts}


def write(repository: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the results of a run, which replace earlier ones of the same models."""
    path, page = repository / RECORD, repository / PAGE
    record = json.loads(path.read_text()) if path.exists() else {}
    here = {name: value for name, value in where(repository).items() if name in ("commit", "date", "torch")}
    record |= {name: {**each, **here} for name, each in found.items()}
    path.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table(record)}\n{END}{rest.partition(END)[2]}")


def table(record: Mapping[str, Mapping[str, Any]]) -> str:
    """How many models are served how, then a row for each."""
    counts = Counter(each["served"] for each in record.values())
    told = ", ".join(f"{how}: {counts[how]}" for how in (WHOLE, IN_PART, NOTHING))
    lines = [
        f"{len(record)} models; {told}.",
        "",
        "| model | served | modules with kernels | on | commit |",
        "|---|---|---|---|---|",
    ]
    for name, each in sorted(record.items()):
        lines.append(f"| `{name}` | {each['served']} | {each['parts']} | {each['date']} | {each['commit']} |")
    return "\n".join(lines)
