"""Start processes while other threads may fork.

Whoever starts a process waits, on a pipe, until it has begun, and then reads what it says from others. A child that
another thread forks meanwhile has all of these open, so that both would wait for its end; and the child may wait for
what the thread that starts the process holds. So forks wait until a process has begun.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

from opwright.toolchain.process.forks import hold_off_forks


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process, as `subprocess.Popen` does."""
    with hold_off_forks():
        return subprocess.Popen(command, **options)


def run(command: Sequence[str], timeout_s: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a process to its end, as `subprocess.run` does, and read what it says.

    Raises:
        OSError: It cannot be started.
        subprocess.TimeoutExpired: It took longer, and was killed.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with start(command, text=True, errors="replace", **pipes) as process:
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
