"""Watching a function for side effects, line by line of its own code.

A kernel computes only what a function returns; a side effect would happen once, in the trace, and never again. So
objects are compared before and after every line that may change one: if an object made outside has changed, it is
restored, and the trace ends. So is what changes without such a line, between the beginning and the end. Lines that
print, log, warn and the like end it before they run.

Python reports lines through `sys.settrace`, for one thread. Lines of torch would take as long as the trace itself, so
watching is off inside of every torch function, see `paused`.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)

from opwright.errors import OpwrightError, OutsideTensor, Place, SideEffect
from opwright.tracing.effects import owners
from opwright.tracing.effects.asked_again import answers_alike
from opwright.tracing.effects.happenings import (
    ASKS_FOR_CLASS,
    ASKS_WHICH,
    NEVER_SPARED,
    done_by,
    happening_in,
    logs,
    may_be_numbers,
    value_of,
)
from opwright.tracing.effects.owners import Owner, owner_of, users_place
from opwright.tracing.effects.points import Points, points_of
from opwright.tracing.effects.reach import Reach
from opwright.tracing.effects.state import Snapshot
from opwright.tracing.effects.surroundings import Surroundings
from opwright.tracing.effects.traced import is_of_no_trace, is_traced
from opwright.tracing.hints import AS_ARGUMENT
from opwright.tracing.outside.unasked import is_a
from opwright.tracing.trace_functions import in_front, installed, none_of_them

_MOST_OBJECTS, _NEAREST = 20_000, 1_000
_MOST_SECONDS = 0.02  # for comparing at each line; after that, only the first and the last state are compared
_HINT = "return it, or keep this line outside of the operator"
_IMPORTS = "<frozen importlib._bootstrap>"
_SYMBOLIC = frozenset(  # arithmetic of sizes, which is deep and calls nobody's code
    str(Path(torch.__file__).parent / "fx" / "experimental" / f"{name}.py") for name in ("sym_node", "symbolic_shapes")
)


@contextmanager
def unchanged_outside(name: str, function: Callable[..., Any], arguments: Sequence[Any] = ()) -> Iterator[Watch]:
    """Refuse changes outside of a function until the end of the block, on this thread.

    Args:
        name: The name of the function.
        function: Everything it can reach was made outside.
        arguments: So were its arguments.

    Raises:
        SideEffect: If something changed, or was about to be written out; changes are undone.
        Exception: What a trace could not do, if the function has caught it: eager would not have gone there.
    """
    watch = Watch(name, function, arguments)
    try:
        with in_front(lambda _: watch):
            yield watch
    finally:
        watch.leave()
        if watch.refusal is not None:  # also if the function has caught it
            watch.undo()
            raise watch.refusal from None
    if watch.met is not None:
        raise watch.met


class paused:  # noqa: N801 - read as what it does; a generator would be watched itself
    """Stop watching until the end of the block, while torch runs.

    Args:
        calls_nobody: Whether nothing of the user can run in the block, as in an operation on tensors; then trace
            functions in front of the watch, which look for functions that run, stop as well.
        operation: What is run, if it is one of torch's dispatcher. Those that ask for sizes or the device are asked by
            C++ in places where an error would end the process; they raise nothing.

    Raises:
        SideEffect: If the function has changed something before.
    """

    __slots__ = ("_calls_nobody", "_operation", "_paused")

    def __init__(self, *, calls_nobody: bool = False, operation: OpOverload | None = None) -> None:
        self._calls_nobody = calls_nobody
        self._operation = operation
        self._paused: none_of_them | None = None

    def __enter__(self) -> None:
        watch = _watching()
        if watch is None or not (self._calls_nobody or watch is next(installed())):
            return
        if watch.refusal is not None and (self._operation is None or _gives_a_tensor(self._operation)):
            raise watch.refusal
        self._paused = none_of_them()
        self._paused.__enter__()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._paused is not None:
            self._paused.__exit__()
        if error is not None and _watching() is not None and isinstance(error, _of_traces()):
            meets(error)


def _gives_a_tensor(operation: OpOverload) -> bool:
    return any("Tensor" in str(result.type) for result in operation._schema.returns)


@functools.cache
def _of_traces() -> tuple[type[Exception], ...]:
    """Errors that eager does not raise."""
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode  # imports sympy, as traces do

    return (
        *(OpwrightError, DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode),
        *(UnsupportedFakeTensorException, UnsupportedOperatorException, NotImplementedError, AssertionError),
    )


Met = TypeVar("Met", bound=Exception)


def meets(error: Met) -> Met:
    """Note an error that a trace raises into the function, which may catch it; and return it."""
    watch = _watching()
    if watch is not None:
        watch.met = watch.met or error
    return error


def _watching() -> Watch | None:
    """What watches this thread, perhaps behind other trace functions."""
    return next((each for each in installed() if isinstance(each, Watch)), None)


class Watch:
    """The trace function of a thread.

    Attributes:
        refusal: The refusal of the first side effect, if any.
        met: The first error that the trace raised into the function.
        asks_for_identity: Whether the function asks whether two tensors are one, such as `query is key`.
        asks_for_layout: Whether that may depend on how they lie: `x.contiguous()` is `x` only if `x` is contiguous.
    """

    def __init__(self, name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        _of_traces()  # while nothing is watched
        self.refusal: SideEffect | None = None
        self.met: Exception | None = None
        self.asks_for_identity = self.asks_for_layout = False
        self._name = name
        self._roots = [(function, name), *((argument, "an argument") for argument in arguments)]
        self._codes: dict[types.CodeType, dict[str, Any]] = {}  # of functions that ran, with their globals
        self._snapshot: Snapshot | None = None
        self._kept, self._kept_codes = Reach(_MOST_OBJECTS), 0  # of the snapshot
        self._is_whole = True
        self._open = 0
        self._spent_s = 0.0
        self._surroundings = Surroundings.now()
        self._place: Place | None = None
        self._is_aside = False
        with torch._C.DisableTorchFunction():
            reach = Reach(_NEAREST, looks_into_libraries=True)
            reach.add(self._roots)
            self._first = Snapshot(each for each in reach.objects.values() if not is_a(each[0], FakeTensor))

    def __call__(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        """Watch a function that starts, unless it is torch's.

        Raises:
            SideEffect: If it is the one that writes a log or imports a module, and not torch's own.
        """
        code = frame.f_code
        if self._is_aside or code.co_filename == threading.__file__:
            return None
        if code.co_filename in _SYMBOLIC:
            return self._until_it_returns(frame)
        if (fact := done_by(frame)) is not None:
            self._end(f"{self._name} {fact}, which its kernel would not do", frame)
        if code is torch.Tensor.__hash__.__code__ and self._hashes_a_traced(frame):
            self._end(f"{self._name} {ASKS_WHICH}, which its kernel would not do", frame)
        owner = owner_of(frame)
        if owner is not Owner.USER and code.co_filename == _IMPORTS:
            return self._until_it_returns(frame)
        if owner is Owner.TORCH:
            return None
        if code.co_filename == _IMPORTS:  # before the module runs, whose tensors would be fake for ever
            self._end(f"{self._name} imports a module that is not loaded yet", frame)
        if owner is Owner.USER and logs(code):
            self._end(f"{self._name} logs, which its kernel would not do", frame)
        points = points_of(code)
        if not points.changing and not points.names and not points.compared:
            return None
        self._codes.setdefault(code, frame.f_globals)
        frame.f_trace = lines = _Lines(self, points, owner)  # first: else Python 3.13 and newer stop at no instruction
        frame.f_trace_opcodes = bool(points.names or points.compared)
        return lines

    def _until_it_returns(self, frame: types.FrameType) -> Callable[..., Any]:
        """Leave a frame and its calls alone: arithmetic of sizes, torch's imports (not to be left half done)."""

        def see(_: types.FrameType, event: str, __: Any) -> Any:
            if event == "return":
                self._is_aside = False
            return see

        self._is_aside, frame.f_trace_lines = True, False
        return see

    def open(self, frame: types.FrameType) -> None:
        """Begin a line that may change something."""
        if self.refusal is not None:
            return
        if not self._open:
            self._timed(lambda: self._keep(frame))
        self._open += 1

    def _keep(self, frame: types.FrameType) -> None:
        """Take a snapshot; when there is no time left for one at each line, add what code has reached since."""
        if self._snapshot is None or self._spent_s < _MOST_SECONDS:
            self._place, self._kept = users_place(frame), self._reached()
            self._snapshot = Snapshot(self._kept.objects.values())
        elif len(self._codes) > self._kept_codes:
            known = len(self._kept.objects)
            for code, namespace in itertools.islice(self._codes.items(), self._kept_codes, None):
                self._kept.add(self._kept.of_code(code, namespace))
            self._is_whole = self._kept.is_whole
            self._snapshot.add(itertools.islice(self._kept.objects.values(), known, None))
        self._kept_codes = len(self._codes)

    def close(self) -> None:
        """End such a line."""
        self._open -= 1
        if self._spent_s < _MOST_SECONDS:
            self.compare()

    def compare(self) -> None:
        """Compare objects, and remember a refusal if any has changed.

        Nothing is raised here: a line may end inside of a `with` that holds a lock.
        """
        if self._snapshot is None or self.refusal is not None:
            return
        changed = self._timed(self._snapshot.changed)
        if changed:
            self._refuse(f"{self._name} changes {changed[0].what()}, which is made outside of it", self._place)
        elif not self._is_whole:
            self._refuse(f"{self._name} reaches too many objects to see whether it changes one", self._place)

    def leave(self) -> None:
        """Compare for the last time."""
        self.compare()
        if hidden := self._timed(self._first.changed):  # by what no line shows, such as a function written in C
            self._refuse(f"{self._name} changes {hidden[0].what()}, which is made outside of it", None)
        changed = self._surroundings.changed(lambda variable: self._reached().has(variable))
        if changed is not None:
            self._refuse(f"{self._name} changes {changed}", None)

    def happens(self, frame: types.FrameType, points: Points, owner: Owner) -> bool:
        """Whether loading a name may change something.

        What a forward of a library warns of or asks is left to it: most warn once, and ask much.

        Raises:
            SideEffect: If it has a side effect; also for an earlier one.
        """
        if self.refusal is not None:
            raise self.refusal
        name = points.names[frame.f_lasti]
        happening = happening_in(frame, name)
        if happening is None or (happening.is_common and frame.f_code.co_filename.startswith(owners.FOLDERS)):
            return False
        if not happening.fact:
            return True
        if owner is Owner.FORWARD and happening.fact not in NEVER_SPARED:
            return False
        if happening.fact == ASKS_FOR_CLASS and answers_alike(frame):
            return False
        if happening.owner is None or (not name.is_local and len(name.way) > 1) or self._reached().has(happening.owner):
            self._end(f"{self._name} {happening.fact}, which its kernel would not do", frame)
        return False

    def compares(self, frame: types.FrameType, operands: Sequence[Sequence[str] | None]) -> None:
        """Note that two values are asked to be one object, if they may be tensors.

        Raises:
            OutsideTensor: If one is a tensor that is none of the trace: an argument may be that tensor.
            SideEffect: If they may be numbers of the trace: Python has one object for each small integer.
        """
        known = [value_of(frame, way) for way in operands if way is not None]
        if may_be_numbers(frame, known, is_computed=len(known) < len(operands)):
            self._end(f"{self._name} asks whether two numbers are one object", frame)
        found = [value for value in known if value is not None]
        if not all(is_a(value, torch.Tensor) for value in found):
            return
        self.asks_for_identity = True
        self.asks_for_layout |= "contiguous" in frame.f_code.co_names
        if any(map(is_of_no_trace, found)):
            fact = "the function compares a tensor that is not one of its parameters"
            raise meets(OutsideTensor(fact, hint=AS_ARGUMENT))

    def _hashes_a_traced(self, frame: types.FrameType) -> bool:
        """Whether the user's code takes the hash of a tensor of the trace, perhaps for a set or a dict."""
        above = frame.f_back
        while above is not None and above.f_code.co_filename.startswith("<"):  # the hash of a data class, say
            above = above.f_back
        return above is not None and is_traced(frame.f_locals["self"]) and owner_of(above) is not Owner.TORCH

    def undo(self) -> None:
        """Restore everything that has changed."""
        self._surroundings.put_back()
        with torch._C.DisableTorchFunction():
            for snapshot in (self._snapshot, self._first):
                if snapshot is not None:
                    snapshot.put_back()

    def _end(self, fact: str, frame: types.FrameType) -> None:
        self._refuse(fact, users_place(frame))
        assert self.refusal is not None
        raise self.refusal

    def _refuse(self, fact: str, place: Place | None) -> None:
        self.refusal = self.refusal or SideEffect(fact, place=place, hint=_HINT)

    def _reached(self) -> Reach:
        reach = Reach(_MOST_OBJECTS)
        with torch._C.DisableTorchFunction():
            reach.add(self._roots)
            for code, namespace in self._codes.items():
                reach.add(reach.of_code(code, namespace))
        self._is_whole = reach.is_whole
        return reach

    def _timed(self, work: Callable[[], Any]) -> Any:
        begin = time.thread_time()
        try:
            with torch._C.DisableTorchFunction():
                return work()
        finally:
            self._spent_s += time.thread_time() - begin


class _Lines:
    """Watches one frame."""

    __slots__ = ("_is_open", "_owner", "_points", "_watch")

    def __init__(self, watch: Watch, points: Points, owner: Owner) -> None:
        self._watch = watch
        self._points = points
        self._owner = owner
        self._is_open = False

    def __call__(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        """Compare after a line, when the next one begins or the frame ends."""
        if event == "opcode":
            if frame.f_lasti in self._points.names:
                self._open_if(self._watch.happens(frame, self._points, self._owner), frame)
            if frame.f_lasti in self._points.compared:
                self._watch.compares(frame, self._points.compared[frame.f_lasti])
        elif event in ("line", "return"):
            if self._is_open:
                self._is_open = False
                self._watch.close()
            self._open_if(event == "line" and frame.f_lineno in self._points.changing, frame)
        return self

    def _open_if(self, may_change: bool, frame: types.FrameType) -> None:
        if may_change and not self._is_open:
            self._is_open = True
            self._watch.open(frame)
