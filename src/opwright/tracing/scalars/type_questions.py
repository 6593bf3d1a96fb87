"""Whether a function tests the types of its numbers: a traced number is not a `float` or `int`."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator
from typing import Any

from opwright.tracing.outside.code.instructions import named_by, names_in
from opwright.tracing.outside.purity import is_installed
from opwright.tracing.outside.unasked import content

_QUESTIONS = frozenset(
    {"isinstance", "issubclass", "type", "__class__", "str", "repr", "format", "hash", "is_integer", "hex"}
)


def asks_for_types(function: Callable[..., Any]) -> bool:
    """Whether a function, or a user function that it reaches by name, has such a test."""
    return any(_QUESTIONS & names_in(code) or _matches_types(code) for code in _reached(function, set()))


def _matches_types(code: types.CodeType) -> bool:
    """Whether there is a `case int():` in it, or in functions inside of it."""
    nested = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return any(step.opname == "MATCH_CLASS" for step in dis.get_instructions(code)) or any(map(_matches_types, nested))


def _reached(function: Any, seen: set[int]) -> Iterator[types.CodeType]:
    function = _innermost(function)
    if not isinstance(function, types.FunctionType) or id(function) in seen or is_installed(function.__module__):
        return
    seen.add(id(function))
    yield function.__code__
    for name in named_by(function.__code__).globals:
        yield from _reached(function.__globals__.get(name), seen)
    for cell in function.__closure__ or ():
        yield from _reached(content(cell), seen)


def _innermost(function: Any) -> Any:
    """The function behind wrappers and methods of wrappers."""
    if isinstance(function, types.MethodType):
        function = function.__self__
    while (inner := getattr(function, "__dict__", {}).get("__wrapped__")) is not None:
        function = inner
    return function
