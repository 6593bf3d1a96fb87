"""Start processes while other threads may fork, and signals come.

Whoever starts a process waits, on a pipe, until it has begun, and then reads what it says from others. A child that
another thread forks meanwhile has all of these open, so that both would wait for its end; and the child may wait for
what the thread that starts the process holds. So forks wait until a process has begun.

An interrupt may come when a process is there and its number is not yet known, so that nobody could end it. So what
handlers of signals do is put off, too.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opwright.toolchain.process.forks import hold_off_forks

_MAY_RAISE = (signal.SIGALRM, signal.SIGTERM, signal.SIGINT)  # the likeliest is put back last: it may raise at once


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put off forks by other threads, and what handlers of signals raise, until the end of the block."""
    with hold_off_forks(), _signals_put_off():
        yield


@contextmanager
def _signals_put_off() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # handlers run in that one alone
        yield
        return
    came: list[tuple[int, types.FrameType | None]] = []
    handlers = {int(number): handler for number in _MAY_RAISE if callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came:
            handlers[number](number, frame)


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process, as `subprocess.Popen` does."""
    with undisturbed():
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
