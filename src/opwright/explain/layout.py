"""Wrap text to at most 100 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable

WIDTH = 100
MARGIN = "  "
_LABEL = 10


def wrapped(text: str, first: str = "", then: str = "") -> list[str]:
    """Wrap text to the width of a section; `first` and `then` are the prefixes of its lines."""
    return textwrap.wrap(
        text,
        WIDTH - len(MARGIN),
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def labelled(label: str, text: str) -> list[str]:
    """Write text in a column to the right of a label."""
    return wrapped(text, f"{label:<{_LABEL}}", " " * _LABEL)


def counted(names: Iterable[str]) -> str:
    """List distinct names with their counts: "gates ×3, old_cell"."""
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in Counter(names).items()) or "nothing"
