"""How many cores this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Those of its affinity mask, if the system has one; else all of the machine."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on macOS, and not where a sandbox forbids it
        return os.cpu_count() or 1
