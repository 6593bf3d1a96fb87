"""Tell the caller's errors, such as those of the reference, from our own."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

from opwright.binding.environment import hooks_of_saved_tensors
from opwright.binding.transforms.as_written import RunsAsWritten
from opwright.errors import (
    FallbackRefused,
    FallbackWarning,
    OpwrightError,
    OutsideTensor,
    UndeclaredMutation,
    UnsupportedReturn,
    WrapperRefused,
)
from opwright.tracing.recording.faults import comes_from_a_signal

Function = TypeVar("Function", bound=Callable[..., Any])

_code: set[CodeType] = set()
_awaiting: set[CodeType] = set()


def runs_reference(function: Function) -> Function:
    """Mark a function that runs a reference, without a wrapper that compilers would see."""
    _code.add(function.__code__)
    return function


def is_for_the_caller(error: BaseException) -> bool:
    """Whether an error should leave the call of an operator.

    It should if the reference raised it, if it is about the operator's definition, if the type of an argument refuses
    the operator, if the operator is to be served in another way, or if it was asked for.
    """
    if isinstance(error, OutsideTensor) and error.becomes_an_argument and _is_awaited():
        return True
    return isinstance(error, (UnsupportedReturn, UndeclaredMutation, WrapperRefused)) or is_wanted(error)


def awaits_tensors(function: Function) -> Function:
    """Mark a method that serves a call again, with tensors from outside as arguments, if its object `can_capture`."""
    _awaiting.add(function.__code__)
    return function


def _is_awaited() -> bool:
    """Whether such a method waits for the call that fails; calls by way of torch's dispatcher have none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _awaiting and frame.f_locals["self"].can_capture:
            return True
        frame = frame.f_back
    return False


def is_wanted(error: BaseException) -> bool:
    """Whether the reference or other user code raised an error, strict settings asked for it, or it asks a caller.

    User code inside of an operator means signal handlers and saved-tensor hooks; checkpoints raise in these to stop a
    recomputation. A refusal that passed through a checkpoint's hooks is one of a checkpoint inside of the function,
    which a trace has run.
    """
    if isinstance(error, (FallbackRefused, FallbackWarning, RunsAsWritten)) or comes_from_a_signal(error):
        return True
    code = _code if isinstance(error, OpwrightError) else {*_code, *_code_of_saved_tensor_hooks()}
    return any(frame.f_code in code for frame, _ in traceback.walk_tb(error.__traceback__))


def _code_of_saved_tensor_hooks() -> set[CodeType | None]:
    return {getattr(hook, "__code__", None) for hook in hooks_of_saved_tensors()}
