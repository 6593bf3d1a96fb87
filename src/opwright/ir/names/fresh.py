"""Names that nothing has yet."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable


def fresh(wished: str, *taken: Container[str]) -> str:
    """A name that none of these hold, as close to the wish as can be: the wish itself, or it with a number."""
    numbered = (f"{wished}_{number}" for number in itertools.count(1))
    return next(name for name in itertools.chain([wished], numbered) if not any(name in names for names in taken))


def fresh_stem(stem: str, names: Iterable[str], again: str) -> str:
    """How new names may begin, as none of these does: the stem, with `again` in front as often as it takes."""
    taken = tuple(names)
    while any(name.startswith(stem) for name in taken):
        stem = f"{again}{stem}"
    return stem
