"""One fault and what must be true after it: the results, the warnings, the locks, and the next call."""

from __future__ import annotations

import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from opwright.api.operator import Operator
from opwright.binding.dispatcher import registration as dispatcher
from opwright.errors import FallbackWarning

_LONGEST_S = 60
Results = Sequence[torch.Tensor]
Strike = Callable[[], Any]
"""Gives a context in which a fault strikes."""


class Hung(BaseException):
    """A call took too long. No `except Exception` catches it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An operator to be struck.

    Attributes:
        reference: The function as written.
        make: Makes the operator anew.
        call: Calls a function, the operator or the reference, and gives all results, gradients included.
    """

    reference: Callable[..., Any]
    make: Callable[[], Operator]
    call: Callable[[Callable[..., Any]], Results]


def problems(subject: Subject, strike: Strike, *, recovers: bool = True) -> list[str]:
    """What is wrong after a fault: one sentence each.

    Args:
        subject: What is struck.
        strike: The fault.
        recovers: Whether a new operator is to have kernels afterwards.
    """
    expected = subject.call(subject.reference)
    operator = subject.make()
    found = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with in_time():
                with strike():
                    made = subject.call(operator)
                found += _differences("with the fault", made, expected)
                served = operator.last_rung
                found += _differences("at the next call", subject.call(operator), expected)
        except (Exception, Hung) as escaped:
            return [f"escaped: {''.join(traceback.format_exception(escaped))[-1500:]}"]
    found += _unexpected_warnings(operator, served, [str(w.message) for w in said if w.category is FallbackWarning])
    found += _locks_held(operator)
    if recovers:
        anew = subject.make()
        found += _differences("in a new operator", subject.call(anew), expected)
        if anew.last_rung != "cpp":
            found.append(f"a new operator is served by {anew.last_rung}")
    return found


def _differences(when: str, made: Results, expected: Results) -> list[str]:
    try:
        torch.testing.assert_close(list(made), list(expected))
    except AssertionError as difference:
        return [f"{when}: {difference}"]
    return []


def _unexpected_warnings(operator: Operator, served: str | None, said: Sequence[str]) -> list[str]:
    """One where it fell back, none where it did not; its transforms, which are operators too, at most one each."""
    mine = [
        text
        for text in said
        if text.startswith(f"opwright: {operator.name.split('::')[1]} falls back to your function: ")
    ]
    found = [] if len(set(said)) == len(said) else [f"said twice: {said}"]
    if served == "composed" and not said:
        found.append("fell back and said nothing")
    if len(mine) > 1:
        found.append(f"said {len(mine)} reasons: {mine}")
    return found


def _locks_held(operator: Operator) -> list[str]:
    locks = {
        "variants": operator._variants._lock,
        "family": operator._family._lock,
        "dispatcher": dispatcher._lock,
    }
    held: list[str] = []

    def look() -> None:
        held.extend(name for name, lock in locks.items() if not _is_free(lock))

    thread = threading.Thread(target=look)  # a lock that its own thread may take again is held for others only
    thread.start()
    thread.join()
    return [f"the lock of {name} is held" for name in held]


def _is_free(lock: Any) -> bool:
    lock = getattr(lock, "_lock", lock)  # inside of one that children make anew
    if not lock.acquire(timeout=1):
        return False
    lock.release()
    return True


@contextmanager
def in_time() -> Iterator[None]:
    """Raise Hung after a while."""

    def hung(*_: Any) -> None:
        raise Hung(f"it took more than {_LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(_LONGEST_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
