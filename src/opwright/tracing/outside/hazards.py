"""Lines that read something no guard can compare, and whether a trace runs them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opwright.errors import NoKernel, Place
from opwright.tracing.outside.code.instructions import codes_in
from opwright.tracing.trace_functions import TraceFunction, in_front


class OutsideUnknown(NoKernel):
    """A function reads something outside of its arguments whose changes cannot be detected."""


class ImportedMeanwhile(NoKernel):
    """A trace imported a module, whose values had no guards yet."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """Lines that read something that cannot be compared.

    Attributes:
        code: The code they are in.
        lines: All of them.
        fact: What they read, as in "global 'log', a Logger".
        imports: Whether importing a module settles what they read.
    """

    code: types.CodeType
    lines: frozenset[int]
    fact: str
    imports: bool = False

    @property
    def place(self) -> Place:
        """The first of them."""
        return Place(self.code.co_filename, min(self.lines, default=self.code.co_firstlineno))


def refusing(function: Callable[..., Any], hazards: Sequence[Hazard]) -> Callable[..., Any]:
    """Wrap a function so that a call which comes to the line of a hazard raises.

    Raises:
        OutsideUnknown: At such a call, before the line runs: what it would change could not be undone.
        ImportedMeanwhile: At a call that imports a module, if there is no other hazard.
    """
    if not hazards:
        return function

    refused = {(each.place.file, line): each for each in hazards[::-1] if not each.imports for line in each.lines}

    def refuse(line: tuple[str, int]) -> None:
        if hazard := refused.get(line):
            raise OutsideUnknown(
                f"{_name_of(function)} reads {hazard.fact}, which may be another at each call",
                place=hazard.place,
                hint="make it a parameter, or name it in freeze= of the decorator",
            )

    @functools.wraps(function)
    def watched(*arguments: Any) -> Any:
        with _lines_run([code for hazard in hazards for code in codes_in(hazard.code)], refuse) as run:
            result = function(*arguments)
        for line in run:  # also if the function has caught it
            refuse(line)
        if any(_is_met(hazard, run) for hazard in hazards):
            raise ImportedMeanwhile("it imports a module", hint="import it at the top of the file")
        return result

    return watched


def telling(function: Callable[..., Any], hazards: Sequence[Hazard], tell: Callable[[], object]) -> Callable[..., Any]:
    """Wrap a function so that a call which runs the line of a hazard tells so, whatever becomes of it."""
    if not hazards:
        return function

    @functools.wraps(function)
    def watched(*arguments: Any) -> Any:
        run = set[tuple[str, int]]()
        try:
            with _lines_run([code for hazard in hazards for code in codes_in(hazard.code)]) as run:
                return function(*arguments)
        finally:
            if any(_is_met(hazard, run) for hazard in hazards):
                tell()

    return watched


def _is_met(hazard: Hazard, run: Set[tuple[str, int]]) -> bool:
    return any((hazard.place.file, line) in run for line in hazard.lines)


@contextmanager
def _lines_run(
    codes: Sequence[types.CodeType], before_line: Callable[[tuple[str, int]], None] | None = None
) -> Iterator[set[tuple[str, int]]]:
    """The lines of some code, with their files, that this thread runs until the end of the block."""
    wanted, run = set(map(id, codes)), set[tuple[str, int]]()

    def before(behind: TraceFunction | None) -> TraceFunction:
        def enter(frame: types.FrameType, event: str, argument: Any) -> Any:
            others = behind(frame, event, argument) if behind else None
            if id(frame.f_code) not in wanted:
                return others

            def step(frame: types.FrameType, event: str, argument: Any) -> Any:
                nonlocal others
                run.add(line := (frame.f_code.co_filename, frame.f_lineno))
                others = others and others(frame, event, argument)
                if event == "line" and before_line is not None:
                    before_line(line)
                return step

            return step

        return enter

    with in_front(before):
        yield run


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
