"""Trace functions of a thread, one in front of another: `sys.settrace` has room for one alone.

Each calls the one behind it. Whoever looks for one of them must look behind those in front of it, so all are put
there by `in_front`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TraceFunction = Callable[..., Any]
_BEHIND = "behind"


@contextmanager
def in_front(make: Callable[[TraceFunction | None], TraceFunction]) -> Iterator[None]:
    """Put a trace function in front of those of this thread, until the end of the block.

    Args:
        make: Gives it, for the one behind it, which it must call; None if there is none.
    """
    behind = sys.gettrace()
    first = make(behind)
    setattr(first, _BEHIND, behind)
    sys.settrace(first)
    try:
        yield
    finally:
        sys.settrace(behind)


class none_of_them:  # noqa: N801 - read as what it does; entered at each operation of a trace
    """Run none of them until the end of the block: what this thread calls there is none of the reference's."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(None)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)


def installed() -> Iterator[Any]:
    """The trace functions of this thread, the foremost first."""
    found: Any = sys.gettrace()
    while found is not None:
        yield found
        found = getattr(found, _BEHIND, None)
