"""Telling the errors that are the caller's, as those of the reference, from those of what stands between the two."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

import torch

from opwright.errors import FallbackRefused, FallbackWarning, UndeclaredMutation, UnsupportedReturn
from opwright.tracing.recording.faults import comes_from_a_signal

Function = TypeVar("Function", bound=Callable[..., Any])

_code: set[CodeType] = set()


def runs_reference(function: Function) -> Function:
    """Mark a function that runs a reference; it stays as it is, so that compilers see nothing around the reference."""
    _code.add(function.__code__)
    return function


def is_for_the_caller(error: BaseException) -> bool:
    """Whether an error is to leave the call of an operator.

    It is if the reference raised it, if it is about the definition of the operator, and if somebody asked for it.
    """
    return isinstance(error, (UnsupportedReturn, UndeclaredMutation)) or is_wanted(error)


def is_wanted(error: BaseException) -> bool:
    """Whether the reference raised an error, or code of the caller's, or somebody asked for one instead of a fallback.

    Code of the caller's that runs inside of an operator are handlers of signals and hooks of saved tensors;
    checkpoints raise in these to stop a recomputation.
    """
    if isinstance(error, (FallbackRefused, FallbackWarning)) or comes_from_a_signal(error):
        return True
    code = {*_code, *_code_of_saved_tensor_hooks()}
    return any(frame.f_code in code for frame, _ in traceback.walk_tb(error.__traceback__))


def _code_of_saved_tensor_hooks() -> set[CodeType | None]:
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True) or ()
    return {getattr(hook, "__code__", None) for hook in hooks}
