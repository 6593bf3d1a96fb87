"""Telling the errors of a reference, which are its caller's, from those of what stands between the two."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

from opwright.errors import FallbackRefused, FallbackWarning, UndeclaredMutation, UnsupportedReturn

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
    """Whether the reference raised an error, or somebody asked for one instead of a fallback."""
    if isinstance(error, (FallbackRefused, FallbackWarning)):
        return True
    return any(frame.f_code in _code for frame, _ in traceback.walk_tb(error.__traceback__))
