"""What the files of examples/by_hand define."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import opwright
from opwright.toolchain.modules import module_of_file

FOLDER = Path(__file__).parents[2] / "examples" / "by_hand"


def by_hand(file: str, name: str) -> Any:
    """What a file calls so, such as an operator."""
    return getattr(_module(file), name)


@cache
def _module(file: str) -> ModuleType:
    return module_of_file(f"by_hand_{file}", FOLDER / f"{file}.py")


def written(operator: opwright.Operator) -> set[str]:
    """The rungs that are written by hand."""
    return {rung.name for rung in operator.rungs() if rung.origin == "written"}
