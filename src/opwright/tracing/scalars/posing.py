"""Traced numbers and sizes say that they are Python's numbers.

`isinstance(n, int)`, `case int():`, an abstract class and `functools.singledispatch` ask a number for its `__class__`.
A branch on the answer leaves no guard behind, so it must be that of a call, where a size is an int. So are attributes
that only Python's numbers have: `n.bit_length()`, or `getattr(n, "real", 0)`. And comparisons: `n > 2` is True or
False, of which there is one each (`flag is True`), and the trace guards the answer.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import torch

from opwright.tracing.effects.owners import UNWATCHED, Owner, owner_of
from opwright.tracing.scalars.numbers import NumberTable
from opwright.tracing.torch_hooks.exchanged import CLASS, Exchanged

_PLAIN: dict[Any, Callable[[Any], Any]] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_COMPARED = (torch.SymInt, torch.SymFloat)
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


@contextmanager
def posing_as_plain(numbers: NumberTable) -> Iterator[None]:
    """On this thread, let numbers pose as Python's before all code but that of torch and this package.

    Raises:
        NumberNeeded: From within, if an attribute is read that needs the value of a varying number.
    """
    with _exchanged.on_this_thread(numbers), _comparing().on_this_thread(numbers):
        yield


def _told_class(number: Any) -> Any:
    frame = sys._getframe(1)
    if frame.f_code.co_filename.startswith(UNWATCHED):  # torch asks ten thousand times in a trace
        return type(number)
    return _PLAIN[type(number)] if _is_told_to(frame) else type(number)


def _missing(number: Any, name: str) -> Any:
    plain, numbers = _PLAIN[type(number)], _exchanged.here()
    if numbers is None or not hasattr(plain, name) or not _is_told_to(sys._getframe(1)):
        raise AttributeError(f"{type(number).__name__!r} object has no attribute {name!r}", name=name, obj=number)
    numbers.refuse_value(number, f"the function reads {name} of a number")
    return getattr(plain(number), name)


@functools.cache
def _comparing() -> Exchanged[NumberTable]:
    """The comparisons of torch's numbers, which torch defines when it imports what computes with them."""
    import torch.fx.experimental.sym_node  # imports sympy, as traces do

    questions = [*product(_COMPARED, _COMPARISONS), (torch.SymFloat, "is_integer")]
    return Exchanged({(kind, name): _answering(vars(kind)[name]) for kind, name in questions})


def _answering(ask: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(ask)
    def answer(number: Any, *other: Any) -> Any:
        found = ask(number, *other)
        return bool(found) if type(found) is torch.SymBool and _is_told_to(sys._getframe(1)) else found

    return answer


def _is_told_to(frame: types.FrameType) -> bool:
    """Whether the code of a frame is not torch's, nor this package's, nor that of another thread."""
    return _exchanged.here() is not None and owner_of(frame) is not Owner.TORCH


_exchanged: Exchanged[NumberTable] = Exchanged(
    {
        **{(kind, CLASS): property(_told_class) for kind in _PLAIN},
        **{(kind, "__getattr__"): _missing for kind in _PLAIN},
    }
)
