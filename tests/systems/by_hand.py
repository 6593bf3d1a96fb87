"""The operators of examples/by_hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import opwright
from opwright.cli.load import load_operators

FOLDER = Path(__file__).parents[2] / "examples" / "by_hand"


def by_hand(file: str, name: str) -> opwright.Operator:
    """An operator of one of the files."""
    return _operators(file)[name]


@cache
def _operators(file: str) -> dict[str, opwright.Operator]:
    found = load_operators(str(FOLDER / f"{file}.py"))
    return {operator.name.partition("::")[2]: operator for operator in found if isinstance(operator, opwright.Operator)}


def written(operator: opwright.Operator) -> set[str]:
    """The rungs that are written by hand."""
    return {rung.name for rung in operator.rungs() if rung.origin == "written"}
