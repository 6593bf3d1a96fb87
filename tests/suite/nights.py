"""The cases of a test of which most run in the nightly sweeps only."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def mostly_at_night(cases: Iterable[Any], by_day: int | Container[Any]) -> list[Any]:
    """Cases for `parametrize`: the first few, or those of a collection, run by day, and the others at night.

    As there, a tuple holds the values of several parameters.
    """
    cases = list(cases)
    chosen = cases[:by_day] if isinstance(by_day, int) else by_day
    return [case if case in chosen else _at_night(*(case if isinstance(case, tuple) else (case,))) for case in cases]


def _at_night(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.nightly)
