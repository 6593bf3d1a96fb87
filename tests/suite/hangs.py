"""End a process whose test hangs, after it has printed where each of its threads is.

The plugin of pytest starts and ends a thread for each test: ten of 1,376 seconds of all processes together. One that
starts anew once a minute ends a test after `hang_limit` seconds or up to a minute earlier.
"""

from __future__ import annotations

import faulthandler
import os
import time
from collections.abc import Callable, Generator
from typing import TextIO

import pytest

_STEP_S = 60.0


class Hangs:
    """A plugin that ends processes in which nothing goes on.

    Args:
        limit_s: How long a test may take at most; no limit if it is zero.
        clock: Tells the time, in seconds.
    """

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s, self._clock = limit_s, clock
        self._since = -float("inf")
        self._errors: TextIO | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Begin to wait again, unless a wait has just begun."""
        if self._limit_s > 0 and self._clock() - self._since > min(_STEP_S, self._limit_s / 2):
            self._since = self._clock()
            self._errors = self._errors or os.fdopen(os.dup(2), "w")
            faulthandler.dump_traceback_later(self._limit_s, exit=True, file=self._errors)
        return (yield)

    def pytest_unconfigure(self) -> None:
        """Wait no more."""
        faulthandler.cancel_dump_traceback_later()
