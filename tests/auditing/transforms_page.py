"""Write docs/transforms.md: one operator in three implementations, audited: `python -m tests.auditing.transforms_page`.

Each argument switches an option of the audit on, such as `quick`.
"""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

import opwright
from opwright.auditing.scorecard import RED, STATES
from tests.auditing.three_ways import SAMPLES, WAYS, reference

_MARKS = {"pass": "pass", "raises": "**raises**", "silently wrong": "**WRONG**", "torch itself raises": "torch raises"}
_HEAD = """# Operators under PyTorch's transforms, modes and tools

The element-wise part of an LSTM-like cell with two results (`examples/lltm.py`), implemented in three ways and audited
(`opwright audit`): with `@opwright.operator`; with `torch.library.custom_op`, `register_autograd` and `register_fake`;
and as a `torch.autograd.Function`. The last two share a correct handwritten backward pass of differentiable operations;
the sources are in `tests/auditing/three_ways.py`.

- **pass**: the same result as the function itself; derivatives are compared in float64
- **raises**: an error, although the function itself works
- **WRONG**: values, strides, dtypes or types differ from the function's, without an error
- **torch raises**: PyTorch fails on the function itself, too
- **–**: skipped; the reasons are below

To generate this page again (takes minutes):

    python -m tests.auditing.transforms_page > docs/transforms.md
"""


def page(scorecards: Mapping[str, Mapping[str, Any]], versions: str) -> str:
    """The whole page, from the JSON of a scorecard for each way."""
    parts = [
        _HEAD,
        f"Versions: {versions}.\n",
        "## Totals\n",
        *_totals(scorecards),
        "\n## Rows\n",
        *_rows(scorecards),
        *(line for way, scorecard in scorecards.items() for line in _words(way, scorecard)),
    ]
    return "\n".join(parts) + "\n"


def _totals(scorecards: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = [f"| | {' | '.join(STATES)} |", f"|---|{'---|' * len(STATES)}"]
    for way, scorecard in scorecards.items():
        counts = Counter(row["state"] for row in scorecard["rows"])
        lines.append(f"| {way} | {' | '.join(str(counts[state]) for state in STATES)} |")
    return lines


def _rows(scorecards: Mapping[str, Mapping[str, Any]]) -> list[str]:
    first, *_ = scorecards.values()
    lines = [f"| family | row | {' | '.join(scorecards)} |", f"|---|---|{'---|' * len(scorecards)}"]
    for position, row in enumerate(first["rows"]):
        states = [scorecard["rows"][position]["state"] for scorecard in scorecards.values()]
        marks = " | ".join(_MARKS.get(state, "–") for state in states)
        lines.append(f"| {row['family']} | {row['name']} | {marks} |")
    return lines


def _words(way: str, scorecard: Mapping[str, Any]) -> list[str]:
    """The reasons of the rows that did not pass: red rows first, and rows with the same reason on one line."""
    said: dict[tuple[str, str], list[str]] = {}
    for row in sorted(scorecard["rows"], key=lambda row: row["state"] not in RED):
        if row["state"] != "pass":
            said.setdefault((row["state"], _one_line(row["detail"])), []).append(f"{row['family']}: {row['name']}")
    return [f"\n## {way}\n", *(f"- *{state}*: {'; '.join(rows)}: {text}" for (state, text), rows in said.items())]


def _one_line(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:200]


if __name__ == "__main__":
    options: dict[str, Any] = dict.fromkeys(sys.argv[1:], True)
    found = {name: opwright.audit(way, reference, SAMPLES, **options).to_json() for name, way in WAYS.items()}
    print(page(found, f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}"), end="")
