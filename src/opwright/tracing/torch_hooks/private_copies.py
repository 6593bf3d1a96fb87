"""Copies of torch's functions with other globals, for our own use; the originals stay unchanged."""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def private_copy(
    function: Callable[..., Any], names: Mapping[str, Any], modules: Mapping[str, Any]
) -> Callable[..., Any]:
    """Copy a function with other values for some names, and other modules for some imports.

    Args:
        function: A Python function; wrappers around it are left out.
        names: Globals that override those of its module.
        modules: Modules for its `import` statements, by dotted name; others are imported as usual.
    """
    original = inspect.unwrap(function)
    assert isinstance(original, types.FunctionType)

    def imported(
        name: str,
        namespace: Mapping[str, Any] | None = None,
        local: Mapping[str, Any] | None = None,
        members: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        found = modules[name] if name in modules else __import__(name, namespace, local, members or (), level)
        return found if members or level else names.get(name.partition(".")[0], found)

    own_builtins = {**vars(builtins), "__import__": imported}
    namespace = {**original.__globals__, **names, "__builtins__": own_builtins}
    copy = types.FunctionType(
        original.__code__, namespace, original.__name__, original.__defaults__, original.__closure__
    )
    copy.__kwdefaults__ = original.__kwdefaults__
    return copy


def names_of(function: Any) -> frozenset[str]:
    """The globals, attributes and modules that a function names, also in functions inside of it."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return frozenset() if code is None else _names(code)


def _names(code: types.CodeType) -> frozenset[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(code.co_names).union(*map(_names, inner))
