"""Watching a function run, line by line of its own code, for what it does outside of itself.

A kernel computes what a function returns; what the function does beside that would happen in its trace, and never
again. So every line that may change an object is looked at before and after: if an object made outside has changed,
it gets back what it held, and the trace ends there. Lines that print, log, warn and the like end it before they do.

Python tells of lines by `sys.settrace`, which belongs to a thread. It would tell of those of torch too, and take as long
as the trace itself: it is switched off inside of every torch function, see `paused`.
"""

from __future__ import annotations

import sys
import sysconfig
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from opwright.errors import Place, SideEffect
from opwright.tracing.effects.happenings import happening_in, logs
from opwright.tracing.effects.points import Points, points_of
from opwright.tracing.effects.reach import Reach
from opwright.tracing.effects.state import Snapshot

_MOST_OBJECTS = 20_000
_MOST_SECONDS = 0.02  # for looking at each line; from then on only the first state and the last are compared
_HINT = "return it, or keep this line outside of the operator"
_UNWATCHED = tuple(f"{folder}/" for folder in (Path(torch.__file__).parent, Path(__file__).parents[2]))
_LIBRARY = f"{sysconfig.get_path('stdlib')}/"
_IMPORTS = "<frozen "


@contextmanager
def unchanged_outside(name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Refuse that anything outside of a function changes until the end of the block, on this thread.

    Args:
        name: What the function is called.
        function: What it can reach is made outside.

    Raises:
        SideEffect: If something did, or if something was about to be written out; what has changed is as it was.
    """
    watch, before = Watch(name, function), sys.gettrace()
    sys.settrace(watch)
    try:
        yield
        watch.settle()
    finally:
        sys.settrace(before)
        watch.undo()
        if watch.refusal is not None:  # also if the function has caught it
            raise watch.refusal from None


@contextmanager
def paused() -> Iterator[None]:
    """Do not watch what torch does until the end of the block."""
    watch = sys.gettrace()
    if not isinstance(watch, Watch):
        yield
        return
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(watch)


class Watch:
    """The trace function of a thread.

    Attributes:
        refusal: What the function has done, once it has.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.refusal: SideEffect | None = None
        self._name = name
        self._function = function
        self._codes: dict[types.CodeType, dict[str, Any]] = {}  # of functions that ran, with their globals
        self._snapshot: Snapshot | None = None
        self._is_whole = True
        self._open = 0
        self._spent_s = 0.0
        self._place: Place | None = None

    def __call__(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        """Watch a function that begins to run, unless it is torch's."""
        code = frame.f_code
        if code.co_filename.startswith((*_UNWATCHED, _IMPORTS)) or self.refusal is not None:
            return None
        if logs(code):
            caller = _first_outside_of(frame, code.co_filename)
            if not caller.f_code.co_filename.startswith(_UNWATCHED):
                self.refuse("logs", frame)
            return None
        points = points_of(code)
        if not points.changing and not points.names:
            return None
        self._codes.setdefault(code, frame.f_globals)
        frame.f_trace_opcodes = bool(points.names)
        return _Lines(self, points)

    def open(self, frame: types.FrameType) -> None:
        """Begin a line that may change something."""
        self._place = _place(frame) or self._place
        if not self._open and (self._snapshot is None or self._spent_s < _MOST_SECONDS):
            self._snapshot = self._timed(lambda: Snapshot(list(self._reached().objects.values())))
        self._open += 1

    def close(self, frame: types.FrameType) -> None:
        """End such a line."""
        self._open -= 1
        if self._spent_s < _MOST_SECONDS:
            self.settle()

    def settle(self) -> None:
        """See whether anything has changed.

        Raises:
            SideEffect: If so.
        """
        if self._snapshot is None or self.refusal is not None:
            return
        snapshot = self._snapshot
        changed = self._timed(snapshot.changed)
        if changed:
            self._end(f"{self._name} changes {changed[0].name}, which is made outside of it")
        if not self._is_whole:
            self._end(f"{self._name} reaches too many objects to see whether it changes one")

    def happens(self, frame: types.FrameType, points: Points) -> bool:
        """Look at a name that is about to be loaded: whether what it leads to may change something.

        Raises:
            SideEffect: If it leads to something that is seen outside.
        """
        name = points.names[frame.f_lasti]
        happening = happening_in(frame, name)
        if happening is None:
            return False
        if not happening.fact:
            return True
        if happening.owner is None or (not name.is_local and len(name.way) > 1) or self._reached().has(happening.owner):
            self.refuse(happening.fact, frame)
        return False

    def refuse(self, fact: str, frame: types.FrameType) -> None:
        """End the trace.

        Raises:
            SideEffect: Always.
        """
        self._place = _place(frame) or self._place
        self._end(f"{self._name} {fact}, which its kernel would not do")

    def undo(self) -> None:
        """Give back to everything that has changed what it held."""
        if self._snapshot is not None:
            for kept in reversed(self._snapshot.changed()):
                kept.put_back()

    def _end(self, fact: str) -> None:
        self.refusal = SideEffect(fact, place=self._place, hint=_HINT)
        self.undo()
        raise self.refusal

    def _reached(self) -> Reach:
        reach = Reach(_MOST_OBJECTS)
        with torch._C.DisableTorchFunction():
            reach.add([(self._function, self._name)])
            for code, namespace in self._codes.items():
                reach.add(reach.of_code(code, namespace))
        self._is_whole = reach.is_whole
        return reach

    def _timed(self, work: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        try:
            with torch._C.DisableTorchFunction():
                return work()
        finally:
            self._spent_s += time.perf_counter() - begin


class _Lines:
    """Watches one frame."""

    __slots__ = ("_is_open", "_points", "_watch")

    def __init__(self, watch: Watch, points: Points) -> None:
        self._watch = watch
        self._points = points
        self._is_open = False

    def __call__(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        """Look at what a line has done when the next one begins, or the frame ends."""
        if event == "opcode":
            if not self._is_open and frame.f_lasti in self._points.names:
                self._open_if(self._watch.happens(frame, self._points), frame)
            elif frame.f_lasti in self._points.names:
                self._watch.happens(frame, self._points)
        elif event in ("line", "return"):
            if self._is_open:
                self._is_open = False
                self._watch.close(frame)
            self._open_if(event == "line" and frame.f_lineno in self._points.changing, frame)
        return self

    def _open_if(self, may_change: bool, frame: types.FrameType) -> None:
        if may_change and not self._is_open:
            self._is_open = True
            self._watch.open(frame)


def _place(frame: types.FrameType | None) -> Place | None:
    """The line of the user's own that is running."""
    while frame is not None and frame.f_code.co_filename.startswith((*_UNWATCHED, _LIBRARY, _IMPORTS)):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None


def _first_outside_of(frame: types.FrameType, file: str) -> types.FrameType:
    while frame.f_back is not None and frame.f_code.co_filename == file:
        frame = frame.f_back
    return frame
