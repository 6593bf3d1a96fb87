"""used: lines of a launcher → those lines without declarations that nothing reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DECLARATION = re.compile(r"const (?:Size|Tensor&) (\w+) = ")
_WORD = re.compile(r"\w+")


def used(lines: Sequence[str]) -> list[str]:
    """Leave out the inputs and sizes that nothing below their declaration reads."""
    kept: list[str] = []
    read: set[str] = set()
    for line in reversed(lines):
        declared = _DECLARATION.match(line)
        if declared is None or declared[1] in read:
            kept.append(line)
            read.update(_WORD.findall(line))
    return kept[::-1]
