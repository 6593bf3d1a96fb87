"""Python's garbage collector: full collections wait while much is imported or derived.

A full collection looks at every object of the process. With torch and sympy loaded that takes 0.05 s, and happened five
times in a first call, for a quarter of its time. Young objects are collected as ever, so that memory stays bounded.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEVER = 2**30  # so many collections of the middle generation
_lock = threading.Lock()
_usual: list[int] = []  # for each context that is open: what the collector was set to before


@contextmanager
def no_full_collections() -> Iterator[None]:
    """Put full collections off, in all threads, until the last such context ends."""
    with _lock:
        young, middle, full = gc.get_threshold()
        _usual.append(_usual[0] if _usual else full)
        gc.set_threshold(young, middle, _NEVER)
    try:
        yield
    finally:
        with _lock:
            young, middle, full = gc.get_threshold()
            usual = _usual.pop()
            if not _usual and full == _NEVER:  # unless somebody else has set it meanwhile
                gc.set_threshold(young, middle, usual)
