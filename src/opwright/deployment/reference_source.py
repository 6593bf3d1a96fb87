"""References as the text of one module: the functions as written, and all of the user's that they reach.

    constants    numbers, strings and dtypes, by value
    imports      modules of Python and torch, and what is taken from them
    functions    as they are in the user's file, comments included, without decorators

Whatever else a function reaches cannot be carried, and is refused by name.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import sys
import sysconfig
import textwrap
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from opwright.errors import WheelUnsupported
from opwright.operators.base import BaseOperator
from opwright.tracing.interface.signature import place_of

_PLAIN = (bool, int, float, str, bytes, type(None), torch.dtype)
_MISSING = object()


def reference_module(functions: Sequence[Callable[..., Any]]) -> str:
    """Write the module that holds the functions, under their own names.

    Raises:
        WheelUnsupported: If one of them reaches something that cannot be carried.
    """
    carried = _Carried()
    for function in functions:
        carried.add_function(function)
    return carried.text()


class _Carried:
    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._imports: set[str] = set()
        self._constants: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    def add_function(self, function: Callable[..., Any]) -> None:
        """Add a function and what it reaches."""
        if not isinstance(function, types.FunctionType):
            raise _refused(function, "is no function that is written in Python")
        name = function.__name__
        if self._is_known(name, function, function):
            return
        definition, text = _definition(function)
        needed, annotated = _names_used(definition)
        for used in sorted(needed):
            self._add_used(used, function)
        for used in sorted(annotated - needed):
            with suppress(WheelUnsupported):  # annotations are text in the module, whatever they name
                self._add_used(used, function)
        self._functions[name] = text

    def _add_used(self, name: str, user: types.FunctionType) -> None:
        value = _value_of(user, name)
        if value is not _MISSING:
            self._add(name, value, user)

    def text(self) -> str:
        """The module."""
        parts = ['"""The functions that the operators of this package came from, as they were written."""']
        parts.append("\n".join(["from __future__ import annotations", "", *sorted(self._imports)]))
        if self._constants:
            parts.append("\n".join(f"{name} = {value}" for name, value in sorted(self._constants.items())))
        return "\n\n".join(parts) + "\n" + "".join(f"\n\n{text}\n" for text in self._functions.values())

    def _add(self, name: str, value: Any, user: Callable[..., Any]) -> None:
        if isinstance(value, BaseOperator):
            value = value.reference
        if isinstance(value, types.FunctionType) and not _is_installed(value.__module__):
            if value.__name__ != name:
                raise _refused(user, f"calls {value.__name__} by another name, {name}")
            self.add_function(value)
        elif not self._is_known(name, value, user):
            self._add_plain(name, value, user)

    def _add_plain(self, name: str, value: Any, user: Callable[..., Any]) -> None:
        if isinstance(value, types.ModuleType) and _is_installed(value.__name__):
            self._imports.add(_import_of(value.__name__, name))
        elif (origin := _origin(value)) is not None:
            module, attribute = origin
            renamed = "" if attribute == name else f" as {name}"
            self._imports.add(f"from {module} import {attribute}{renamed}")
        elif (spelled := _spelled(value)) is not None:
            self._constants[name] = spelled
            if "torch." in spelled:
                self._imports.add("import torch")
        else:
            raise _refused(user, f"uses {name}, a value of type {type(value).__name__}")

    def _is_known(self, name: str, value: Any, user: Callable[..., Any]) -> bool:
        if name not in self._values:
            self._values[name] = value
            return False
        if self._values[name] is value or _spelled(value) == _spelled(self._values[name]) is not None:
            return True
        raise _refused(user, f"and another function of the same wheel mean different things by {name}")


def _definition(function: types.FunctionType) -> tuple[ast.FunctionDef, str]:
    """The statement that defines a function, and its text without decorators."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        parsed = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        raise _refused(function, "has no source that can be read") from None
    if not isinstance(parsed, ast.FunctionDef):
        raise _refused(function, "is not defined by a statement of its own")
    return parsed, "\n".join(source.splitlines()[parsed.lineno - 1 : parsed.end_lineno])


def _names_used(definition: ast.FunctionDef) -> tuple[set[str], set[str]]:
    """Names that a definition reads when it runs, and those in its annotations; its decorators are left out."""
    given = definition.args
    defaults = [*given.defaults, *[default for default in given.kw_defaults if default is not None]]
    everyone = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    annotations = [one.annotation for one in everyone if one is not None and one.annotation is not None]
    if definition.returns is not None:
        annotations.append(definition.returns)
    return _names_read([*defaults, *definition.body]), _names_read(annotations)


def _names_read(parts: Sequence[ast.AST]) -> set[str]:
    nodes = [node for part in parts for node in ast.walk(part)]
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _value_of(function: types.FunctionType, name: str) -> Any:
    """What a name stands for outside of a function; nothing if that is one of its own variables or a built-in."""
    code = function.__code__
    if name in code.co_freevars:
        return dict(zip(code.co_freevars, function.__closure__ or (), strict=True))[name].cell_contents
    if name in code.co_varnames or name in code.co_cellvars:
        return _MISSING
    value = function.__globals__.get(name, _MISSING)
    if value is _MISSING and not hasattr(builtins, name) and not _is_bound_inside(code, name):
        raise _refused(function, f"uses {name}, which is not defined")
    return value


def _is_bound_inside(code: types.CodeType, name: str) -> bool:
    """Whether a function inside of this one has the name for a variable."""
    nested = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return any(name in (*inner.co_varnames, *inner.co_cellvars) or _is_bound_inside(inner, name) for inner in nested)


def _is_installed(module: str | None) -> bool:
    """Whether a module is there wherever torch is; a file of the user's may have the name of one of Python's."""
    root = (module or "").partition(".")[0]
    if root not in sys.stdlib_module_names:
        return root == "torch"
    file = getattr(sys.modules.get(root), "__file__", None)
    return root != "__main__" and (file is None or Path(file).is_relative_to(sysconfig.get_path("stdlib")))


def _import_of(module: str, name: str) -> str:
    parent, _, last = module.rpartition(".")
    if module == name:
        return f"import {module}"
    return f"from {parent} import {last}" if last == name and parent else f"import {module} as {name}"


def _origin(value: Any) -> tuple[str, str] | None:
    """A module of Python or torch and the name by which it has a value."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(name, str) or not (module is None or _is_installed(module)):
        return None
    public = [*([module] if module else []), "torch", "torch.nn.functional"]
    return next(((m, name) for m in public if getattr(import_module(m), name, None) is value), None)


def _spelled(value: Any) -> str | None:
    """A constant as Python spells it; None if it is none."""
    if isinstance(value, tuple) and type(value) is tuple:
        members = [_spelled(member) for member in value]
        return None if None in members else f"({', '.join(map(str, members))}{',' * (len(members) == 1)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value) if type(value) in _PLAIN else None


def _refused(function: Any, fact: str) -> WheelUnsupported:
    name = getattr(function, "__name__", type(function).__name__)
    try:
        place = place_of(function)
    except AttributeError:
        place = None
    return WheelUnsupported(
        f"{name} {fact}, so it cannot be carried in a wheel",
        place=place,
        hint="use numbers, strings, dtypes, modules of Python and torch, and functions that use nothing else",
    )
