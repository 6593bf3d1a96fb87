"""Where in the user's source something callable is defined."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

from opwright.errors import Place


def place_of(given: Any) -> Place:
    """The line where a callable is defined; the name of a builtin."""
    function = function_behind(given)
    if function is None:
        module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", type(given).__qualname__)
        return Place(f"{module}.{name}" if module else str(name), 0)
    return Place(function.__code__.co_filename, function.__code__.co_firstlineno)


def function_behind(given: Any) -> types.FunctionType | None:
    """The Python function that runs first when something is called; None if it is built in."""
    given = inspect.unwrap(given)
    match given:
        case types.FunctionType():
            return given
        case types.MethodType() | staticmethod() | classmethod():
            return function_behind(given.__func__)
        case functools.partial():
            return function_behind(given.func)
        case type():
            return None
        case _:
            called = inspect.getattr_static(type(given), "__call__", None)
            return function_behind(called) if isinstance(called, types.FunctionType) else None
