"""Low priority for processes that nobody waits for.

Where Linux groups processes by session (`sched_autogroup_enabled`, as on most desktops), a nice value counts only
within a session, and compilers have sessions of their own. So the session's own nice value, in `/proc/PID/autogroup`,
is set too.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

LOW = 10  # of 19; at 0 a process gets nine times as much of a core


def lower(session: int) -> None:
    """Give all processes of a session, which its first process began, low priority, as far as that is allowed."""
    with contextlib.suppress(OSError, AttributeError):  # Windows has no priorities like these
        os.setpriority(os.PRIO_PGRP, session, LOW)
    _tell_session(session, LOW)


def lower_own() -> None:
    """The same for this process, which began its session."""
    lower(os.getpid())


def pass_on(session: int) -> None:
    """Give a session that this process has started the priority of this process."""
    with contextlib.suppress(OSError, AttributeError):
        own = os.getpriority(os.PRIO_PROCESS, 0)
        if own > 0:
            _tell_session(session, own)


def _tell_session(session: int, nice: int) -> None:
    with contextlib.suppress(OSError):  # only Linux has the file; without rights, it takes ten values a second
        Path(f"/proc/{session}/autogroup").write_text(str(nice))
