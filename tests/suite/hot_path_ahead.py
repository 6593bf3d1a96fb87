"""The hot path in C++ is built while the workers of a run collect; else all of them would wait for it at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_BUILD = """
from opwright.binding.native import hot_path
from opwright.settings import Settings

hot_path(Settings.from_environment()).build()
"""


@contextmanager
def hot_path_built_ahead() -> Iterator[None]:
    """Build it in a process of its own; a test that needs it earlier waits at its lock, and says what goes wrong."""
    building = subprocess.Popen([sys.executable, "-c", _BUILD], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        building.send_signal(signal.SIGINT)  # which ends its compiler too
        building.wait()
