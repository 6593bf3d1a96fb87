"""Patched members of torch's classes and modules, which behave differently on tracing threads only."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from opwright.toolchain.process.forks import Lock

Here = TypeVar("Here")
CLASS = "__class__"
_ABSENT = object()  # of the class itself


class Exchanged(Generic[Here]):
    """Members that are patched while any thread asks for it.

    Args:
        members: The replacement of each: functions that call `here()` and, if that is None, do the same as the
            original.
    """

    def __init__(self, members: Mapping[tuple[Any, str], Any]) -> None:
        self._members = members
        self._before = {(kind, name): vars(kind).get(name, _ABSENT) for kind, name in members}
        self._lock = Lock()
        self._here: dict[int, Here] = {}  # by threads

    def here(self) -> Here | None:
        """The value that this thread has set; None if it has not."""
        return self._here.get(threading.get_ident())

    @contextmanager
    def on_this_thread(self, here: Here) -> Iterator[None]:
        """Patch them until the end of the block."""
        thread = threading.get_ident()
        with self._lock:
            self._here[thread] = here
            self._put(self._members)
        try:
            yield
        finally:
            with self._lock:
                del self._here[thread]
                if not self._here:
                    self._put(self._before)

    @staticmethod
    def _put(members: Mapping[tuple[Any, str], Any]) -> None:
        for (kind, name), member in members.items():
            if name == CLASS:
                _put_class(kind, member)
            elif member is _ABSENT:
                delattr(kind, name)
            else:
                setattr(kind, name, member)


def _put_class(kind: type, told: Any) -> None:
    """Have the objects of a class tell another `__class__`, or their own: `setattr` would change that of the class."""
    (namespace,) = gc.get_referents(vars(kind))
    if told is _ABSENT:
        namespace.pop(CLASS)
    else:
        namespace[CLASS] = told
    kind.__doc__ = kind.__doc__  # Python remembers what it finds in a class until something of it is set
