"""Lines of text that are at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable

WIDTH = 100
MARGIN = "  "
_LABEL = 10


def wrapped(text: str, first: str = "", then: str = "") -> list[str]:
    """Break text where it is too wide for a section; `first` and `then` begin its lines."""
    return textwrap.wrap(
        text,
        WIDTH - len(MARGIN),
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def labelled(label: str, text: str) -> list[str]:
    """Write text behind a label, in a column of its own."""
    return wrapped(text, f"{label:<{_LABEL}}", " " * _LABEL)


def counted(names: Iterable[str]) -> str:
    """List names, each once, with how often it occurs: "gates ×3, old_cell"."""
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in Counter(names).items()) or "nothing"
