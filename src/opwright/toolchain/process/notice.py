"""A log line for a user who waits."""

from __future__ import annotations

import logging
import sys
import time

_QUIET_S = 0.5
_log = logging.getLogger("opwright")


class Notice:
    """A line in the log, written once, and only when something takes longer than half a second.

    At a terminal it is a warning, which is visible without setting up logging; elsewhere information.

    Args:
        wanted: Whether the settings ask for such lines.
    """

    def __init__(self, wanted: bool) -> None:
        self._due = time.monotonic() + _QUIET_S
        self._open = wanted

    def tick(self, text: str) -> None:
        """Report progress; written once, if it takes long."""
        if self._open and time.monotonic() >= self._due:
            self._open = False
            at_terminal = sys.stderr is not None and sys.stderr.isatty()
            _log.log(logging.WARNING if at_terminal else logging.INFO, "%s …", text)
