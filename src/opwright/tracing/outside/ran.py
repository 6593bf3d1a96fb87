"""The functions that a trace runs.

What a call of a large library may reach by names is half of that library. What it did run is little; and a later call
in which everything that this code reads is the same runs the same code. So a walk may keep to it, once a trace has
told which it is.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from opwright.errors import NoKernel, Place
from opwright.package import PACKAGE
from opwright.tracing.outside.hazards import OutsideUnknown
from opwright.tracing.outside.purity import LIBRARIES, is_installed
from opwright.tracing.trace_functions import TraceFunction, in_front

Codes = frozenset[str]
_of_steps: set[types.CodeType] = set()
_NOT_OF_USERS = (*LIBRARIES, f"{PACKAGE}{os.sep}")
_KEEPS_TO_NONE = "opwright_keeps_to_none"
_IMPORTING = ("importlib", "_frozen_importlib")
Derived = TypeVar("Derived")


class RanMore(NoKernel):
    """A trace ran functions that the walk before it had left out, or not found.

    Attributes:
        codes: All that it ran.
    """

    def __init__(self, codes: Codes, *, fact: str = "", place: Place | None = None) -> None:
        super().__init__(fact or "it runs other functions than before", place=place, hint="serve the modules inside")
        self.codes = codes


def for_good(derive: Callable[..., Derived]) -> Callable[..., Derived]:
    """Wrap a derivation after which nobody looks for more functions, so that it need not be tried again.

    Raises:
        NoKernel: At a call, instead of RanMore.
    """

    def derived(*arguments: Any) -> Derived:
        try:
            return derive(*arguments)
        except RanMore as more:
            raise NoKernel(more.fact, place=more.place, hint=more.hint) from None

    return derived


@functools.lru_cache(maxsize=65536)
def spelled_code(code: types.CodeType) -> str:
    """A name of a code object that is the same in another process, and another one for other instructions."""
    digest = hashlib.sha256(code.co_code + repr((code.co_names, code.co_varnames)).encode()).hexdigest()
    return f"{code.co_qualname}:{code.co_firstlineno}:{digest[:16]}"


_numbers = itertools.count()
_left_out: dict[int, Codes] = {}  # here, because a watched function must reach nothing that changes


def number_of_a_trace() -> int:
    """A number for the next trace."""
    return next(_numbers)


def left_out(number: int) -> Codes:
    """The functions that a trace ran beyond those to which the walk had kept, also if it was refused; asked once."""
    return _left_out.pop(number, frozenset())


def keeping_to(codes: Codes, searched: Codes, number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that a call raises which runs other functions of the user.

    Args:
        codes: Those to which the walk kept.
        searched: Those that it has found; also some that it searched in any case.
        number: That of the trace, for `left_out`.
        function: The function.

    Raises:
        RanMore: At a call that runs more than these, also if it fails; and at one that runs a function which was not
            found, what that reads is not compared. It may have run for once, to fill a cache.
    """

    @functools.wraps(function)
    def watched(*arguments: Any) -> Any:
        try:
            with _functions_run() as run:
                result = function(*arguments)
        finally:
            if more := frozenset(map(spelled_code, run.values())) - codes - searched:
                _left_out[number] = _left_out.get(number, frozenset()) | more
                raise RanMore(codes | more)
        for code in run.values():
            if spelled_code(code) not in searched:
                fact = f"it runs {code.co_qualname}, to which nothing leads that can be compared"
                raise RanMore(codes, fact=fact, place=Place(code.co_filename, code.co_firstlineno))
        return result

    setattr(watched, _KEEPS_TO_NONE, not codes)
    return watched


def note_step(*functions: Any) -> None:
    """Note what belongs to a step that is not traced: it may run in traces, and nothing that it reads is compared."""
    _of_steps.update(each.__code__ for each in functions if isinstance(each, types.FunctionType))


def running_no_other(noted: frozenset[types.CodeType], function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that a call raises which runs code of the user's whose reads are not guarded.

    Python finds much of what it runs by itself, such as `keys` in `g(**config)` or `_missing_` of an enum.

    Raises:
        OutsideUnknown: At such a call.
    """
    if not noted:  # a function of a library, without code of the user's
        return function

    @functools.wraps(function)
    def watched(*arguments: Any) -> Any:
        with _functions_run() as run:
            result = function(*arguments)
        for code in run.values():
            if (
                code not in noted
                and code not in _of_steps
                and not code.co_filename.startswith(_NOT_OF_USERS)
                and code.co_name != "__del__"
            ):
                raise OutsideUnknown(
                    f"{getattr(function, '__name__', type(function).__name__)} runs {code.co_qualname}, to which "
                    "nothing leads that can be compared",
                    place=Place(code.co_filename, code.co_firstlineno),
                    hint="call it by its name",
                )
        return result

    return watched


def is_unknown(function: Callable[..., Any]) -> bool:
    """Whether nobody knows yet what a function runs, so that its first call will raise RanMore."""
    return getattr(function, _KEEPS_TO_NONE, False)


def _is_of_library(module: str | None) -> bool:
    """Whether a function is of Python, torch or NumPy, or makes a named tuple or an annotation."""
    return is_installed(module) or (module or "").startswith(("namedtuple_", "typing_extensions"))


def _is_of_caller(frame: types.FrameType) -> bool:
    """Whether sympy has written it, for sizes of many terms, and calls it: it says of no module that it is its own."""
    return "__name__" not in frame.f_globals and _name_of(frame.f_back).startswith("sympy.")


def _is_imported(frame: types.FrameType, outermost: types.FrameType) -> bool:
    """Whether it runs because a library imports a module, or Python asks where one lies.

    The module may be one that the library has written itself, as torch.distributed does, or one of others, whose own
    imports and data classes run too.
    """
    found: types.FrameType | None = frame
    while found and found is not outermost:
        if found.f_code.co_name == "<module>" and _is_of_library(_importer_of(found)):
            return True
        if found.f_code.co_name == "find_spec" and _name_of(found.f_back).startswith(_IMPORTING):
            return True
        found = found.f_back
    return False


def _importer_of(frame: types.FrameType) -> str:
    """The module whose code imports the one whose body runs."""
    found = frame.f_back
    while _name_of(found).startswith(_IMPORTING):
        found = found.f_back if found else None
    return _name_of(found)


def _name_of(frame: types.FrameType | None) -> str:
    return str(frame.f_globals.get("__name__")) if frame else ""


@contextmanager
def _functions_run() -> Iterator[dict[int, types.CodeType]]:
    """The code, by identity, of all functions that this thread calls until the end of the block, but for libraries'."""
    run: dict[int, types.CodeType] = {}
    passed: dict[int, types.CodeType] = {}  # kept alive, as identities are compared
    outermost = sys._getframe(2)  # of the block, behind contextlib

    def before(behind: TraceFunction | None) -> TraceFunction:
        def enter(frame: types.FrameType, event: str, argument: Any) -> Any:
            code = frame.f_code
            if id(code) not in run and id(code) not in passed and not _is_imported(frame, outermost):
                is_left_out = _is_of_library(frame.f_globals.get("__name__")) or _is_of_caller(frame)
                (passed if is_left_out else run)[id(code)] = code
            return behind(frame, event, argument) if behind else None

        return enter

    with in_front(before):
        yield run
