"""Locks between processes: held through the kernel, so that they die with their holder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from opwright.errors import BuildFailed

_POLL_S = 0.01


@contextmanager
def hold(paths: Sequence[Path], on_wait: Callable[[str], None], patience_s: float) -> Iterator[None]:
    """Hold several lock files at once.

    They are taken in sorted order, so that two processes never wait for each other.

    Args:
        paths: The lock files; created where they are missing.
        on_wait: Called again and again while another process holds one of them, with the pid that it wrote.
        patience_s: How long to wait for one of them.

    Raises:
        BuildFailed: Another process kept one of them for longer than that.
    """
    with ExitStack() as stack:
        for path in sorted(set(paths)):
            descriptor = stack.enter_context(_opened(path))
            _wait(descriptor, path, on_wait, patience_s)
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Try to hold a lock file; yields whether it is held."""
    with _opened(path) as descriptor:
        yield _taken(descriptor)


_descriptors: set[int] = set()  # of lock files that this process has open


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _descriptors.add(descriptor)
    opener = os.getpid()
    try:
        yield descriptor
    finally:
        if os.getpid() == opener:
            _descriptors.discard(descriptor)
            # Closing is not enough: a process started meanwhile would go on holding the lock.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _let_go() -> None:
    """Leave the locks of its parent to it, in a forked child: otherwise they would not die with the parent."""
    while _descriptors:
        os.close(_descriptors.pop())


os.register_at_fork(after_in_child=_let_go)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(descriptor: int, path: Path, on_wait: Callable[[str], None], patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while not _taken(descriptor):
        holder = os.pread(descriptor, 32, 0).decode(errors="replace")
        if time.monotonic() > deadline:
            raise BuildFailed(
                f"process {holder} has held {path} for more than {patience_s:g} s",
                hint="let it go on or end it, or choose another folder with OPWRIGHT_CACHE=/path/to/folder",
            )
        on_wait(holder)
        time.sleep(_POLL_S)
