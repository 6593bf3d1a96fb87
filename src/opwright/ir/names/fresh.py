"""Unused names."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable


def fresh(wished: str, *taken: Container[str]) -> str:
    """The wanted name if none of these hold it, else the wanted name with a number."""
    numbered = (f"{wished}_{number}" for number in itertools.count(1))
    return next(name for name in itertools.chain([wished], numbered) if not any(name in names for names in taken))


def fresh_stem(stem: str, names: Iterable[str], again: str) -> str:
    """A prefix that none of these names has: the stem, with `again` in front as often as needed."""
    taken = tuple(names)
    while any(name.startswith(stem) for name in taken):
        stem = f"{again}{stem}"
    return stem
