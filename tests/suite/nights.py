"""The cases of a test of which most run in the nightly sweeps only."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def mostly_at_night(cases: Iterable[Any], by_day: int | Container[Any], *, whole: bool = False) -> list[Any]:
    """Cases for `parametrize`: the first few, or those of a collection, run by day, and the others at night.

    As there, a tuple holds the values of several parameters; of one, if it is to be taken as a whole.
    """
    cases = list(cases)
    chosen = cases[:by_day] if isinstance(by_day, int) else by_day
    return [case if case in chosen else _at_night(case, whole=whole) for case in cases]


def _at_night(case: Any, *, whole: bool) -> Any:
    values = case if isinstance(case, tuple) and not whole else (case,)
    return pytest.param(*values, marks=pytest.mark.nightly)
