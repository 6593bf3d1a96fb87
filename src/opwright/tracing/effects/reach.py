"""The objects made outside of a function that it can reach: through globals, closures, attributes and containers."""

from __future__ import annotations

import collections
import functools
import gc
import logging
import threading
import types
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from opwright.tracing.outside.code.instructions import attributes_set_by, names_in
from opwright.tracing.outside.purity import is_installed, is_library, is_own, module_of
from opwright.tracing.outside.unasked import ABSENT, CONTAINERS, attribute, behind, content, in_slots, is_a, members_of

GLOBALS = "globals"
_ATOMS = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    type(...),
    torch.dtype,
    torch.device,
    types.CodeType,
    type(ABSENT),
)
_PLAIN_CONTAINERS = (*CONTAINERS, collections.OrderedDict, collections.defaultdict, collections.Counter)
_CLOSED = (logging.Logger, logging.Handler, logging.Manager, threading.local)  # they reach everything, or other threads
# Of objects that hold what users give them.
_OPEN_MODULES = frozenset({"types", "argparse", "collections", "queue", "weakref", "_weakrefset"})
_GROWING = "modules"  # sys.modules grows with every import


@dataclass(frozen=True, slots=True)
class Attributes:
    """Some attributes of a module or an object of which the others are not compared.

    Attributes:
        holder: What has them.
        names: Their names.
    """

    holder: Any
    names: frozenset[str]


@dataclass(slots=True)
class Reach:
    """Objects by identity, each with a name for messages.

    Attributes:
        objects: What has been found.
        names: The names that code which has been found uses.
        stored: Those of attributes that it sets.
        most: The most objects to find.
        looks_into_libraries: Whether to find what code names in the modules of libraries, which change while they work:
            `sys.path`, say, and attributes that the code sets.
        is_whole: Whether all objects were found.
    """

    most: int
    looks_into_libraries: bool = False
    objects: dict[int, tuple[Any, str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    is_whole: bool = True
    _modules: list[tuple[types.ModuleType, str]] = field(default_factory=list)
    _closed: list[tuple[Any, str]] = field(default_factory=list)  # libraries, and objects that reach everything

    def add(self, roots: Iterable[tuple[Any, str]]) -> None:
        """Find all that can be reached from some objects."""
        waiting = collections.deque(roots)  # near objects come first
        while waiting:
            value, name = waiting.popleft()
            if not issubclass(type(value), _ATOMS) and id(value) not in self.objects:
                if len(self.objects) >= self.most:
                    self.is_whole = False
                    return
                self.objects[id(value)] = value, name
                waiting += self._members(value, name)
            if not waiting:
                waiting += self._of_modules()

    def has(self, value: Any) -> bool:
        """Whether an object has been found."""
        return id(value) in self.objects

    def _members(self, value: Any, name: str) -> Iterable[tuple[Any, str]]:
        kind = type(value)
        if issubclass(kind, types.FunctionType):
            return self._of_function(value)
        if issubclass(kind, types.CellType):
            return _contents(value, name)
        if issubclass(kind, types.ModuleType):
            (self._closed if _is_closed(value) else self._modules).append((value, name))
            return ()
        if _is_closed(value):
            self._closed.append((value, name))
        if issubclass(kind, _CLOSED):
            return ()
        if not issubclass(kind, CONTAINERS):
            return _of_object(value, name)
        held = [(member, name) for member in members_of(value)]
        return held if kind in _PLAIN_CONTAINERS else [*held, *_of_object(value, name)]

    def _of_function(self, function: types.FunctionType) -> Iterator[tuple[Any, str]]:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        home = function.__globals__.get("__name__")  # a wrapper of torch says that its module is that of what it wraps
        if is_library(home) or is_own(home):
            for name, cell in cells:
                yield from _contents(cell, name)
            return
        yield from ((cell, name) for name, cell in cells)
        yield from ((default, function.__name__) for default in function.__defaults__ or ())
        yield from ((default, name) for name, default in (function.__kwdefaults__ or {}).items())
        yield function.__dict__, function.__name__
        yield from self.of_code(function.__code__, function.__globals__)

    def of_code(self, code: types.CodeType, namespace: dict[str, Any]) -> Iterator[tuple[Any, str]]:
        """What code can reach by names."""
        used = names_in(code)
        self.names |= used
        self.stored |= attributes_set_by(code)
        if id(namespace) not in self.objects:
            self.objects[id(namespace)] = namespace, GLOBALS  # itself, and of its members only the named ones
        yield from ((namespace[name], name) for name in used if name in namespace)

    def _of_modules(self) -> Iterator[tuple[Any, str]]:
        for module, path in self._modules:
            held = attribute(module, "__dict__")
            if id(held) not in self.objects:
                self.objects[id(held)] = held, path
            for name in self.names:
                if name in held and id(held[name]) not in self.objects and not issubclass(type(held[name]), _ATOMS):
                    yield held[name], f"{path}.{name}"
        if self.looks_into_libraries:
            yield from self._of_libraries()

    def _of_libraries(self) -> Iterator[tuple[Any, str]]:
        """What code names in the modules of libraries, and what it sets there, also of their classes and functions."""
        found = {id(holder) for holder, _ in self._closed}
        for holder, path in self._closed:  # which grows meanwhile
            held = vars(holder)
            if self.stored:
                self.objects[id(holder)] = Attributes(holder, frozenset(self.stored)), path
            for name in self.names - {_GROWING} if is_a(holder, types.ModuleType) else ():
                member = held.get(name)
                if type(member) in _PLAIN_CONTAINERS and id(member) not in self.objects:
                    yield member, f"{path}.{name}"
                elif self.stored and id(member) not in found and _is_closed(member):
                    found.add(id(member))
                    self._closed.append((member, f"{path}.{name}"))


def _is_closed(value: Any) -> bool:
    """Whether a module, class, function or object is of a library, or reaches everything."""
    if is_a(value, types.ModuleType):
        return is_own(value.__name__) or is_library(value.__name__)
    if is_a(value, type):
        return is_library(module_of(value))
    if type(value) is types.FunctionType:
        return is_library(value.__globals__.get("__name__"))
    return is_a(value, _CLOSED)


def _contents(cell: types.CellType, name: str) -> list[tuple[Any, str]]:
    held = content(cell)
    return [] if held is ABSENT else [(held, name)]


def _of_object(value: Any, name: str) -> Iterable[tuple[Any, str]]:
    kind = type(value)
    if issubclass(kind, types.MethodType):
        return [(value.__func__, name), (value.__self__, name)]
    if issubclass(kind, functools.partial):
        return [(value.func, name), (value.args, name), (value.keywords, name)]
    if issubclass(kind, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return [] if is_a(value.__self__, (types.ModuleType, type)) else [(value.__self__, name)]
    if kind in weakref.ProxyTypes:
        return [(behind(value), name)]
    if kind is types.MappingProxyType:
        return [(mapping, name) for mapping in gc.get_referents(value)]
    if issubclass(kind, (staticmethod, classmethod)):
        return [(value.__func__, name)]
    if issubclass(kind, property):
        return [(part, name) for part in (value.fget, value.fset, value.fdel)]
    if issubclass(kind, torch.Tensor):
        return [(value.__dict__, name)] if type(value) in (torch.Tensor, torch.nn.Parameter) else []
    if is_own(kind.__module__) and not issubclass(kind, torch.nn.Module):
        return [(attribute(value, "__wrapped__"), name), (getattr(value, "leads_to", None), name)]
    if issubclass(kind, type):
        held = () if is_library(module_of(value)) else _held(value)
        return [(member, f"{value.__name__}.{attribute}") for attribute, member in held]
    if is_installed(module_of(kind)) and not issubclass(kind, torch.nn.Module) and not _is_plain(value):
        return [(attribute(value, "__wrapped__"), name)]
    return [(kind, kind.__name__), *_attributes(value, name)]


def _held(kind: type) -> list[tuple[str, Any]]:
    own = [(name, member) for name, member in list(vars(kind).items()) if not isinstance(member, _UNTOUCHED)]
    return own + [(base.__name__, base) for base in kind.__bases__]


def _attributes(value: Any, name: str) -> Iterator[tuple[Any, str]]:
    held = attribute(value, "__dict__")
    if type(held) is dict:
        yield held, name
    yield attribute(value, "__wrapped__"), name  # of a proxy that is written in C
    yield from ((member, f"{name}.{slot}") for slot, member in in_slots(value).items() if member is not ABSENT)


def _is_plain(value: Any) -> bool:
    """An object of Python's library that holds what users give it, such as a `SimpleNamespace` or a `UserDict`."""
    return type(value).__module__ in _OPEN_MODULES and type(attribute(value, "__dict__")) is dict


_UNTOUCHED = (types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType)
