"""Faults in any function of the package: its n-th call raises, as if its first line did.

The steps are not listed anywhere: those are taken that a run goes through.
"""

from __future__ import annotations

import errno
import inspect
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import opwright
from opwright.errors import BuildFailed, CacheUnusable, InternalError, NoKernel

PACKAGE = Path(opwright.__file__).parent

ERRORS: tuple[Callable[[], Exception], ...] = (
    lambda: KeyError("injected"),
    lambda: AssertionError("injected"),
    lambda: InternalError("injected"),
    lambda: RecursionError("injected"),
    lambda: MemoryError(),
    lambda: OSError(errno.ENOSPC, "No space left on device, injected"),
    lambda: RuntimeError("injected"),
    lambda: StopIteration(),
    lambda: AttributeError("injected"),
    lambda: NotImplementedError("injected"),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "injected"),
    lambda: NoKernel("injected"),
    lambda: CacheUnusable("injected"),
    lambda: BuildFailed("injected"),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """An error at a call of a function.

    Attributes:
        step: The function.
        call: Which call of it raises, from 1 on.
        error: Makes what is raised.
    """

    step: CodeType
    call: int
    error: Callable[[], Exception]

    def __str__(self) -> str:
        return f"{type(self.error()).__name__} at call {self.call} of {name_of(self.step)}"


def name_of(step: CodeType) -> str:
    """Its file in the package, line and name."""
    return f"{Path(step.co_filename).relative_to(PACKAGE)}:{step.co_firstlineno} {step.co_name}"


def steps_of(run: Callable[[], Any]) -> Counter[CodeType]:
    """The functions of the package that a run goes through, and how often each is called.

    What cleans up is left out, generators with it: one that is cut off where it is resumed does not.
    """
    seen: Counter[CodeType] = Counter()
    prefix = f"{PACKAGE}/"

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        cleans_up = code.co_name == "__exit__" or code.co_flags & inspect.CO_GENERATOR
        if event == "call" and code.co_filename.startswith(prefix) and not cleans_up:
            seen[code] += 1

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def faults(steps: Counter[CodeType], each: int, seed: int) -> Iterator[Fault]:
    """For every step some faults: at its first call, then at any; every kind of error comes in turn."""
    chooser = random.Random(seed)
    kind = chooser.randrange(len(ERRORS))
    for step, count in sorted(steps.items(), key=lambda item: name_of(item[0])):
        for attempt in range(each):
            call = 1 if attempt == 0 else chooser.randint(1, count)
            yield Fault(step, call, ERRORS[kind % len(ERRORS)])
            kind += 1


@contextmanager
def struck_by(fault: Fault | None) -> Iterator[list[Fault]]:
    """Let a fault strike; yields a list that it stands in afterwards."""
    struck: list[Fault] = []
    left = fault.call if fault else 0

    def strike(frame: FrameType, event: str, _: Any) -> None:
        nonlocal left
        if fault is not None and event == "call" and frame.f_code is fault.step:
            left -= 1
            if left == 0:
                struck.append(fault)
                raise fault.error()

    sys.setprofile(strike if fault else None)
    try:
        yield struck
    finally:
        sys.setprofile(None)


def sample(every: Sequence[Any], count: int | None, seed: int) -> list[Any]:
    """All of them, or as many as asked for."""
    if count is None or count >= len(every):
        return list(every)
    return random.Random(seed).sample(list(every), count)
