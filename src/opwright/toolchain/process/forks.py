"""Forks: a child has only the forking thread; work of other threads would stay half done in it.

Work that must not be interrupted (a trace, which patches parts of torch, a registration, loading a library) delays
forks until it is over. Long work, such as a build, does not: its locks are recreated in the child, which then does the
work itself or waits for the parent as for any other process.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from opwright.errors import NoKernel

PATIENCE_S = 60.0
"""How long a fork waits; after that, the work is half done in the child, which then derives nothing."""


class Lock:
    """A reentrant lock that is free in a forked child, unless the thread that forked holds it."""

    __slots__ = ("__weakref__", "_depth", "_lock", "_owner")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._depth = 0
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
        self._lock.release()

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """Hold it if nobody else does; tells whether this thread does."""
        if not self._lock.acquire(blocking=False):
            yield False
            return
        try:
            with self:
                yield True
        finally:
            self._lock.release()

    def make_anew(self) -> None:
        """Release it in a child, where its holder does not exist."""
        if self._owner != threading.get_ident():
            self._lock, self._owner, self._depth = threading.RLock(), None, 0


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


class _Gate:
    """A gate between forks and work that must not be interrupted by one.

    Attributes:
        is_torn: Whether this process was forked in the middle of such work.
    """

    def __init__(self) -> None:
        self.is_torn = False
        self._changed = threading.Condition()
        self._forking: int | None = None
        self._depths: dict[int, int] = {}  # of threads that are at such work
        self._employers: dict[int, int] = {}  # threads that wait for what others do

    def enter(self, employer: int | None) -> None:
        """Begin; a thread that is at it already, or works for one that is, waits for no fork."""
        me = threading.get_ident()
        with self._changed:
            if employer is not None:
                self._employers[me] = employer
            if not self._line(me) & self._depths.keys():
                self._changed.wait_for(lambda: self._forking is None, PATIENCE_S)
            self._depths[me] = self._depths.get(me, 0) + 1

    def leave(self) -> None:
        """End."""
        me = threading.get_ident()
        with self._changed:
            self._depths[me] -= 1
            if self._depths[me] == 0:
                del self._depths[me]
                self._employers.pop(me, None)
            self._changed.notify_all()

    def close(self) -> None:
        """Before a fork: wait for work of other threads, then block new work."""
        self._changed.acquire()
        me = threading.get_ident()
        self._forking = me
        self._changed.wait_for(lambda: not self._others(me), PATIENCE_S)

    def open(self) -> None:
        """Let work begin again, after a fork."""
        self._forking = None
        self._changed.notify_all()
        self._changed.release()

    def begin_in_child(self) -> None:
        """Reopen in a child, without the other threads."""
        others = self._others(threading.get_ident())
        self.is_torn = self.is_torn or bool(others)
        for thread in others:
            del self._depths[thread]
        self._changed, self._forking = threading.Condition(), None

    def _others(self, me: int) -> set[int]:
        return self._depths.keys() - self._line(me)

    def _line(self, thread: int) -> set[int]:
        """A thread, the one that waits for what it does, and so on."""
        line = {thread}
        while (thread := self._employers.get(thread, thread)) not in line:
            line.add(thread)
        return line


_gate = _Gate()


@contextmanager
def hold_off_forks(employer: int | None = None) -> Iterator[None]:
    """Delay forks by other threads until the end of the block.

    Args:
        employer: The thread that waits for it, which may be at such work too.
    """
    _gate.enter(employer)
    try:
        yield
    finally:
        _gate.leave()


def refuse_torn() -> None:
    """Refuse to derive in a process that was forked in the middle of such work.

    Raises:
        NoKernel: If it was.
    """
    if _gate.is_torn:
        raise NoKernel(
            f"this process was forked while another thread traced a function for more than {PATIENCE_S:g} s",
            hint="fork before other threads call operators for the first time, or start processes by spawn",
        )


def _in_child() -> None:
    _gate.begin_in_child()
    for lock in list(_locks):
        lock.make_anew()


os.register_at_fork(before=_gate.close, after_in_parent=_gate.open, after_in_child=_in_child)
