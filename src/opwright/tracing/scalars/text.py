"""Numbers and sizes that a reference formats as text in a trace, where the text would be the name of a symbol."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from opwright.tracing.callers import is_outside
from opwright.tracing.scalars.numbers import NumberTable
from opwright.tracing.torch_hooks.exchanged import Exchanged

_PLAIN: dict[Any, Callable[[Any], Any]] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_WRITTEN = {kind: kind.__repr__ for kind in _PLAIN}


@contextmanager
def telling_text(numbers: NumberTable) -> Iterator[None]:
    """On this thread, format sizes by their values in this trace, with a guard, and refuse varying numbers.

    Text that torch and this package write is left alone.

    Raises:
        NumberNeeded: From within, if a varying number is formatted.
    """
    with _exchanged.on_this_thread(numbers):
        yield


def _tell(number: Any) -> str:
    numbers, kind = _exchanged.here(), type(number)
    if numbers is None or not is_outside(sys._getframe(1)):
        written: str = _WRITTEN[kind](number)
        return written
    numbers.refuse_value(number, "the function writes a number as text")
    return repr(_PLAIN[kind](number))


_exchanged: Exchanged[NumberTable] = Exchanged({(kind, "__repr__"): _tell for kind in _PLAIN})
