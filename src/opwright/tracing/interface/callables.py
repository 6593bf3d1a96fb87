"""Callables that an operator can be made from.

given = function | lambda | static method            as it is
      | partial | bound method | callable object     its state is guarded at every call (outside/)
      | built-in function | operation of torch       each call shows its arguments
"""

from __future__ import annotations

import functools
import inspect
import keyword
import re
import types
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from opwright.errors import CallableUnsupported
from opwright.introspection import annotations_of, signature_of
from opwright.ir.names.identifiers import ascii_spelling
from opwright.tracing.interface.place import function_behind, place_of

_ANY = inspect.Signature([
    inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
    inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
])  # fmt: skip


def as_function(given: Any) -> Callable[..., Any]:
    """A function that does the same as the given callable: itself, if it is one.

    Raises:
        CallableUnsupported: If it cannot be called, or does not return results.
    """
    if isinstance(given, staticmethod):
        given = given.__func__
    _refuse_other_than_functions(given)
    behind = function_behind(given)
    for refuses, fact in _UNFINISHED:
        if behind is not None and refuses(behind):
            _refuse(given, fact, "let it return tensors")
    if isinstance(given, types.FunctionType):
        return given
    return _wrapped(given, behind)


def operator_name(reference: Callable[..., Any]) -> str:
    """An identifier for a function, for torch's dispatcher and generated code; a lambda's is `lambda_function`."""
    spelled = ascii_spelling(reference.__name__)
    name = spelled if spelled.isidentifier() else re.sub(r"\W+", "_", spelled, flags=re.ASCII).strip("_")
    return f"{name or 'unnamed'}_function" if keyword.iskeyword(name) or not name.isidentifier() else name


_UNFINISHED: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (inspect.isgeneratorfunction, "is a generator"),
    (inspect.isasyncgenfunction, "is an asynchronous generator"),
    (inspect.iscoroutinefunction, "is a coroutine"),
)


def _refuse_other_than_functions(given: Any) -> None:
    owner = getattr(given, "__self__", None)
    if isinstance(given, torch.nn.Module):
        _refuse(given, "is a module", "opwright.module makes it run by kernels")
    if isinstance(given, functools.partial) and isinstance(given.func, torch.nn.Module):
        _refuse(given, "is a module with arguments", "opwright.module makes the module run by kernels")
    if isinstance(owner, torch.nn.Module):
        _refuse(given, "is a method of a module", "opwright.module makes the module run by kernels")
    if isinstance(given, classmethod | property):
        hint = "decorate a function outside of the class, and call it in the method"
        _refuse(given, f"is a {type(given).__name__} before there is a class", hint)
    if isinstance(given, type):
        _refuse(given, "is a class", "decorate a function that returns tensors")
    if not callable(given):
        _refuse(given, "cannot be called", "decorate a function")
    if hasattr(given, "cache_info"):
        _refuse(given, "remembers its results (functools.lru_cache)", "decorate the function without the cache")


def _refuse(given: Any, fact: str, hint: str) -> NoReturn:
    name = _name_of(given)
    raise CallableUnsupported(f"{name} {fact}", place=place_of(given), hint=hint)


def _name_of(given: Any) -> str:
    if isinstance(given, functools.partial):
        return _name_of(given.func)
    name = getattr(given, "__name__", None)
    return name if isinstance(name, str) else type(given).__name__


class _Owner:
    """The object that a method belongs to, which is not kept alive."""

    def __init__(self, owner: Any) -> None:
        self.reference = weakref.ref(owner)

    @property
    def leads_to(self) -> Any:
        """The object: what it holds must not change in a trace."""
        return self.reference()


def bound_to(owner: Any, function: types.FunctionType) -> Callable[..., Any]:
    """A method of an object, without keeping that alive.

    Raises:
        TypeError: If there are no weak references to the object.
    """
    held = _Owner(owner)

    def called(*args: Any, **kwargs: Any) -> Any:
        return function(held.reference(), *args, **kwargs)

    return _dressed(called, types.MethodType(function, owner), function, (function, held.reference))


def _wrapped(given: Any, behind: types.FunctionType | None) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        return given(*args, **kwargs)

    return _dressed(called, given, behind, given)


def _dressed(called: Any, given: Any, behind: types.FunctionType | None, reads_from: Any) -> Callable[..., Any]:
    """A function that calls the given callable, with its name, signature and annotations."""
    called.__name__ = called.__qualname__ = _name_of(given)
    called.__doc__ = inspect.getdoc(given)
    called.__module__ = str(getattr(behind or given, "__module__", None) or called.__module__)
    called.__annotations__ = annotations_of(behind) if behind else {}
    called.__wrapped__ = behind or given
    called.reads_from = reads_from
    called.__signature__ = _signature_of(given)
    return called  # type: ignore[no-any-return]


def _signature_of(given: Any) -> inspect.Signature:
    """Its signature; `*args, **kwargs` if it has none."""
    try:
        return signature_of(given)
    except (ValueError, TypeError):
        return _ANY
