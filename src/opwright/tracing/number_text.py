"""Numbers that change from call to call, written as text by a reference: the text would be the name of a symbol."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from opwright.tracing.numbers import NumberTable
from opwright.tracing.questions import is_outside

_KINDS: tuple[Any, ...] = (torch.SymInt, torch.SymFloat)


@contextmanager
def refusing_text(numbers: NumberTable) -> Iterator[None]:
    """Ask a table of numbers, on this thread, before one is written as text outside of torch and of this package.

    Raises:
        NumberNeeded: From within, if it is one that changes.
    """
    tracing = threading.get_ident()

    def asking(write: Callable[[Any], str]) -> Callable[[Any], str]:
        def ask(number: Any) -> str:
            if threading.get_ident() == tracing and is_outside(sys._getframe(1)):
                numbers.refuse_text(number)
            return write(number)

        return ask

    before = [kind.__repr__ for kind in _KINDS]
    for kind, write in zip(_KINDS, before, strict=True):
        kind.__repr__ = asking(write)
    try:
        yield
    finally:
        for kind, write in zip(_KINDS, before, strict=True):
            kind.__repr__ = write
