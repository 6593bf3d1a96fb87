"""A line for somebody who waits."""

from __future__ import annotations

import sys
import time

_QUIET_S = 0.5


class Notice:
    """A line on stderr, printed once, and only when something takes longer than half a second at a terminal.

    Args:
        wanted: Whether the settings ask for such lines.
    """

    def __init__(self, wanted: bool) -> None:
        self._due = time.monotonic() + _QUIET_S
        self._open = wanted and sys.stderr is not None and sys.stderr.isatty()

    def tick(self, text: str) -> None:
        """Say by now what is going on; printed if it is late and nothing was printed yet."""
        if self._open and time.monotonic() >= self._due:
            self._open = False
            print(f"opwright: {text} …", file=sys.stderr, flush=True)
