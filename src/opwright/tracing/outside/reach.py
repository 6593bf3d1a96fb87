"""The walk through everything that a function can reach by the names in its code.

It starts at the function and follows globals, closures, defaults, attributes and containers. Of an object those
attributes count whose names stand in some code that was reached, whoever the object belongs to: a walk cannot know
which object a name will be asked of. Functions of torch, NumPy and Python are what their names say.
"""

from __future__ import annotations

import argparse
import builtins
import collections
import enum
import functools
import importlib
import inspect
import operator
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Set
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from opwright.errors import Place
from opwright.tracing.outside.foreign import read_deep_inside
from opwright.tracing.outside.guard import ABSENT, Check, Fetch, Guard
from opwright.tracing.outside.hazards import Hazard
from opwright.tracing.outside.instructions import Lines, Named, named_by
from opwright.tracing.outside.plain import is_plain, spelled
from opwright.tracing.outside.purity import (
    answers_otherwise,
    asks_torch,
    holds_constants,
    is_installed,
    is_third_party,
)

MOST_VALUES = 512
_MOST_MEMBERS = 64
_AT_CONSTRUCTION = frozenset({"__init__", "__new__", "__post_init__"})
_NEVER_ASKED = frozenset({
    "__repr__", "__str__", "__del__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__dict__",
    "__weakref__", "__doc__", "__module__", "__init_subclass__", "__subclasshook__", "__class__", "__sizeof__",
    "__annotations__", "__qualname__", "__match_args__", "__dataclass_fields__", "__dataclass_params__", "__slots__",
    "__static_attributes__", "__firstlineno__", "__orig_bases__", "__parameters__", "__abstractmethods__",
    "_abc_impl", "__dir__", "__copy__", "__deepcopy__", "__annotate__", "__annotations_cache__",
})  # fmt: skip
_HOOKS = frozenset(name for name in vars(torch.nn.Module()) if name.endswith("_hooks"))
_HOLDERS = (types.SimpleNamespace, argparse.Namespace)


@dataclass(frozen=True, slots=True)
class Reads:
    """What a function reads from outside.

    Attributes:
        guard: The function, with everything that is in it.
        hazards: Lines that read what cannot be compared.
    """

    guard: Guard
    hazards: tuple[Hazard, ...]


@dataclass(frozen=True, slots=True)
class _Site:
    """Where something is read: lines of code."""

    code: types.CodeType
    lines: Lines

    @property
    def place(self) -> Place:
        return Place(self.code.co_filename, min(self.lines, default=self.code.co_firstlineno))


def reads_of(function: Callable[..., Any], frozen: frozenset[str] = frozenset()) -> Reads:
    """Walk through what a function can reach.

    Args:
        function: The function as written.
        frozen: Names, such as "SCALE" or "config.eps", whose values are taken for constants.
    """
    own, site = getattr(function, "__module__", None), _Site(_code_of(function), frozenset())
    names, asked, is_dynamic = frozenset[str](), frozenset[str](), False
    while True:
        walk = _Walk(names, is_dynamic, frozen, own, asked)
        guard = walk.describe(function, Fetch.SELF, None, "", site)
        if walk.named <= names and walk.named_absent <= asked and walk.is_dynamic == is_dynamic:
            return Reads(guard, tuple(walk.hazards))
        names, asked, is_dynamic = names | walk.named, asked | walk.named_absent, walk.is_dynamic


def _code_of(function: Any) -> types.CodeType:
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    return code if isinstance(code, types.CodeType) else _code_of.__code__


@dataclass(slots=True)
class _Walk:
    names: frozenset[str]  # attributes that count
    every_name: bool  # whether all of them do
    frozen: frozenset[str]
    own: str | None  # the module of the function
    asked: frozenset[str]  # attributes that may be asked for where they are not
    named: set[str] = field(default_factory=set)
    named_absent: set[str] = field(default_factory=set)
    is_dynamic: bool = False
    hazards: list[Hazard] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)  # what is there once for all: modules, classes, plain functions
    entered: list[Any] = field(default_factory=list)  # what the walk is in the middle of
    values: int = 0

    def describe(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        """The guard of a value."""
        self.values += 1
        if label.removeprefix("global ").replace("'", "") in self.frozen or label in self.frozen:
            return self._guard(fetch, key, Check.NOTHING, None, (), label, site, self._frozen_fact(value))
        if is_plain(value):
            return self._guard(fetch, key, Check.PLAIN, value, (), label, site, spelled(value))
        if self.values > MOST_VALUES:
            return self._unknown(value, fetch, key, label, site, f"more than {MOST_VALUES} values")
        if id(value) in self.seen or any(value is entered for entered in self.entered):
            return self._guard(fetch, key, Check.IDENTITY, value, (), label, site, "again")
        follow = _EXACT.get(type(value)) or next((f for kind, f in _KINDS if isinstance(value, kind)), _Walk.instance)
        self.entered.append(value)
        try:
            return follow(self, value, fetch, key, label, site)
        finally:
            self.entered.pop()

    def _guard(
        self, fetch: Fetch, key: Any, check: Check, expected: Any, inner: Any, label: str, site: _Site, fact: str | None
    ) -> Guard:
        named = None if fact is None else f"{label} {fact}"
        return Guard(fetch, key, check, expected, tuple(inner), label, site.place, named)

    def _frozen_fact(self, value: Any) -> str | None:
        return spelled(value) if is_plain(value) else None

    def _unknown(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site, what: str = "") -> Guard:
        """What cannot be compared: a trace must not read it, and then it need not be told apart on disk."""
        kind = type(value).__name__
        self.hazards.append(Hazard(site.code, site.lines, f"{label}, {what or f'a {kind}'}"))
        return self._guard(fetch, key, Check.IDENTITY, value, (), label, site, "not read")

    def _same(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site, inner: Any = ()) -> Guard:
        """What its name says, and no other object."""
        called = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__qualname__
        name = f"{getattr(value, '__module__', '')}.{called}"
        return self._guard(fetch, key, Check.IDENTITY, value, inner, label, site, name)

    # -- functions -------------------------------------------------------------------------------------------------

    def function(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        home = value.__globals__.get("__name__")
        if is_installed(home):
            return self._installed_function(value, fetch, key, label, site, home)
        if is_third_party(home, self.own):
            found = read_deep_inside(value)
            self.hazards += found.hazards
            return self._guard(fetch, key, Check.IDENTITY, value, (), label, site, found.fact)
        code, name = value.__code__, value.__name__
        is_one = not value.__closure__ and "<locals>" not in value.__qualname__
        if is_one:
            self.seen.add(id(value))
        inner = [
            self._guard(Fetch.CODE, None, Check.PLAIN, code, (), f"code of {name}", site, _spelled_code(code)),
            self.describe(value.__defaults__, Fetch.DEFAULTS, None, f"defaults of {name}", site),
            self.describe(value.__kwdefaults__, Fetch.KEYWORD_DEFAULTS, None, f"defaults of {name}", site),
            *self._closure(value, code),
            *self._globals(value, code),
            *self._function_attributes(value, label, site),
        ]
        check, expected = (Check.IDENTITY, value) if is_one else (Check.TYPE, types.FunctionType)
        return self._guard(fetch, key, check, expected, inner, label, site, "function")

    def _function_attributes(self, value: Any, label: str, site: _Site) -> Iterator[Guard]:
        prefix = f"{label or value.__name__}."
        for name in sorted(self._counting(vars(value)) - {"__wrapped__"}):
            yield self.describe(vars(value)[name], Fetch.ATTRIBUTE, name, f"{prefix}{name}", site)

    def _installed_function(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site, home: str) -> Guard:
        if answers_otherwise(value):
            return self._unknown(value, fetch, key, label, site, f"the answer of {home}.{value.__name__}")
        if asks_torch(value):
            answer = self.describe(value(), Fetch.CALL, None, f"{label or value.__name__}()", site)
            return self._same(value, fetch, key, label, site, (answer,))
        inner = []
        if home.partition(".")[0] != "opwright":
            for position, cell in enumerate(value.__closure__ or ()):  # what torch.vmap and the like were made from
                found = _contents(cell)
                if isinstance(found, (types.FunctionType, list, dict)) or is_plain(found):
                    name = f"{value.__code__.co_freevars[position]} of {value.__name__}"
                    inner.append(self.describe(found, Fetch.CELL, position, name, site))
        if inner:
            return self._guard(
                fetch, key, Check.TYPE, type(value), (
                    self._guard(Fetch.CODE, None, Check.PLAIN, value.__code__, (), label, site, value.__qualname__),
                    *inner,
                ), label, site, "function",
            )  # fmt: skip
        return self._same(value, fetch, key, label, site)

    def _closure(self, function: Any, code: types.CodeType) -> Iterator[Guard]:
        lines = self._note(code).cells
        for position, (name, cell) in enumerate(zip(code.co_freevars, function.__closure__ or (), strict=True)):
            site = _Site(code, lines.get(name, frozenset()))
            found = _contents(cell)
            if found is ABSENT:
                yield self._guard(Fetch.CELL, position, Check.IDENTITY, ABSENT, (), f"'{name}'", site, None)
            elif name != "__class__" and site.lines:
                yield self.describe(found, Fetch.CELL, position, f"'{name}'", site)

    def _globals(self, function: Any, code: types.CodeType) -> Iterator[Guard]:
        named, globals_ = self._note(code), function.__globals__
        inner = []
        for name, lines in sorted(named.globals.items()):
            site, label = _Site(code, lines), f"global '{name}'"
            if name in globals_:
                inner.append(self.describe(globals_[name], Fetch.ITEM, name, label, site))
            else:
                inner.append(self._guard(Fetch.ITEM, name, Check.IDENTITY, ABSENT, (), label, site, "no global"))
                if answers_otherwise(getattr(builtins, name, None)):
                    self.hazards.append(Hazard(code, lines, f"what {name}() gives"))
        yield self._guard(Fetch.GLOBALS, None, Check.TYPE, dict, inner, "globals", _Site(code, frozenset()), "globals")
        yield from self._imports(function, code, named)
        yield from self._environment(code, named)

    def _imports(self, function: Any, code: types.CodeType, named: Named) -> Iterator[Guard]:
        package = function.__globals__.get("__package__") or ""
        inner = []
        for name, lines in sorted(named.imports.items()):
            site = _Site(code, lines)
            full = _module_named(name, package, at_once=name in named.imported_at_once)
            if full is None:
                self.hazards.append(Hazard(code, lines, f"module '{name}'", imports=True))
                continue
            self.seen.discard(id(sys.modules[full]))
            inner.append(self.describe(sys.modules[full], Fetch.ITEM, full, f"module '{full}'", site))
        if inner:
            site = _Site(code, frozenset())
            modules = self._guard(Fetch.ATTRIBUTE, "modules", Check.TYPE, dict, inner, "modules", site, "modules")
            yield self._guard(Fetch.VIA, _get_sys, Check.IDENTITY, sys, (modules,), "sys", site, "sys")

    def _environment(self, code: types.CodeType, named: Named) -> Iterator[Guard]:
        if named.environment_unknown:
            self.hazards.append(Hazard(code, named.environment_unknown, "an environment variable"))
        for name, lines in sorted(named.environment.items()):
            look = functools.partial(_variable, name)
            label = f"environment variable '{name}'"
            yield self.describe(look(None), Fetch.VIA, look, label, _Site(code, lines))

    def _note(self, code: types.CodeType) -> Named:
        named = named_by(code)
        self.named |= named.attributes | named.strings
        self.is_dynamic |= named.is_dynamic
        if named.is_dynamic or "AttributeError" in named.globals:
            self.named_absent |= {name for name in named.attributes | named.strings if name.isidentifier()}
        return named

    def builtin(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        owner = getattr(value, "__self__", None)
        if answers_otherwise(value):
            return self._unknown(value, fetch, key, label, site, f"the answer of {value.__name__}")
        if owner is None or isinstance(owner, types.ModuleType):
            if asks_torch(value):
                answer = self.describe(value(), Fetch.CALL, None, f"{value.__name__}()", site)
                return self._same(value, fetch, key, label, site, (answer,))
            return self._same(value, fetch, key, label, site)
        bound = self.describe(owner, Fetch.VIA, _get_self, f"what {label} belongs to", site)
        return self._guard(fetch, key, Check.TYPE, type(value), (bound,), label, site, value.__name__)

    def method(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        if answers_otherwise(value):
            return self._unknown(value, fetch, key, label, site, f"the answer of {label}")
        inner = (
            self.describe(value.__func__, Fetch.VIA, _get_function, label, site),
            self.describe(value.__self__, Fetch.VIA, _get_self, "'self'", site),
        )
        return self._guard(fetch, key, Check.TYPE, type(value), inner, label, site, "method")

    def wrapper(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        """A static method, a class method, a cached function: all is in the function."""
        inner = self.describe(value.__wrapped__, Fetch.VIA, _get_wrapped, label, site)
        return self._guard(fetch, key, Check.TYPE, type(value), (inner,), label, site, type(value).__name__)

    def partial(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        inner = (
            self.describe(value.func, Fetch.VIA, operator.attrgetter("func"), label, site),
            self.describe(value.args, Fetch.VIA, operator.attrgetter("args"), f"arguments of {label}", site),
            self.describe(value.keywords, Fetch.VIA, operator.attrgetter("keywords"), f"arguments of {label}", site),
        )
        return self._guard(fetch, key, Check.TYPE, type(value), inner, label, site, "partial")

    def property(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        inner = [self.describe(value.fget, Fetch.VIA, operator.attrgetter("fget"), label, site)]
        return self._guard(fetch, key, Check.IDENTITY, value, inner, label, site, "property")

    # -- modules and classes ---------------------------------------------------------------------------------------

    def module(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        self.seen.add(id(value))
        name = value.__name__
        if "__getattr__" in vars(value):  # NumPy loads `numpy.random` when it is asked for
            for each in self.names.intersection(getattr(value, "__all__", ())):
                getattr(value, each, None)
        members = vars(value)
        candidates = sorted(self.names & members.keys())
        follow = self._installed_member if is_installed(name) else self._member
        inner = [guard for each in candidates for guard in follow(value, each, f"{_short(label)}.{each}", site)]
        if not is_installed(name) and (absent := self.asked - members.keys()):
            none = [self._nothing(Fetch.ITEM, each, f"{_short(label)}.{each}", site) for each in sorted(absent)]
            inner.append(self._guard(Fetch.ATTRIBUTE, "__dict__", Check.TYPE, dict, none, label, site, "attributes"))
        return self._guard(fetch, key, Check.IDENTITY, value, inner, label, site, f"module {name}")

    def _member(self, module: Any, name: str, label: str, site: _Site) -> Iterator[Guard]:
        yield self.describe(vars(module)[name], Fetch.ATTRIBUTE, name, label, site)

    def _installed_member(self, module: Any, name: str, label: str, site: _Site) -> Iterator[Guard]:
        value = vars(module)[name]
        if isinstance(value, types.ModuleType):
            if id(value) in self.seen or not is_installed(value.__name__):
                return
            found = self.module(value, Fetch.ATTRIBUTE, name, label, site)
            if found.guards:
                yield found
        elif value is os.environ or value is os.getenv:
            return  # variables are looked at one by one
        elif callable(value):
            if answers_otherwise(value) or asks_torch(value):
                yield self.describe(value, Fetch.ATTRIBUTE, name, label, site)
        elif is_plain(value):
            if not holds_constants(module.__name__):
                yield self.describe(value, Fetch.ATTRIBUTE, name, label, site)
        elif type(value).__module__.startswith("torch.backends"):
            for setting in sorted(self.names):
                if is_plain(found := getattr(value, setting, value)):
                    look = operator.attrgetter(setting)
                    inner = self.describe(found, Fetch.VIA, look, f"{label}.{setting}", site)
                    yield self._guard(Fetch.ATTRIBUTE, name, Check.IDENTITY, value, (inner,), label, site, "settings")
        elif isinstance(value, (ContextVar, type(sys.stdout))):
            yield self.describe(value, Fetch.ATTRIBUTE, name, label, site)

    def kind(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        """A class, which is called, or asked for its attributes."""
        return self._class(value, fetch, key, label, site, _AT_CONSTRUCTION)

    def _class(
        self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site, more: frozenset[str] = frozenset()
    ) -> Guard:
        if is_installed(value.__module__):
            if answers_otherwise(value):
                return self._unknown(value, fetch, key, label, site, f"what {value.__name__} gives")
            return self._same(value, fetch, key, label, site)
        self.seen.add(id(value))
        own = [cls for cls in value.__mro__ if not is_installed(cls.__module__)]
        serves_a_library = any(cls.__module__.partition(".")[0] == "torch" for cls in value.__mro__)
        members = {name: member for cls in reversed(own) for name, member in vars(cls).items()}
        inner = []
        for name, member in sorted(members.items()):
            is_function = isinstance(member, (types.FunctionType, staticmethod, classmethod))
            is_implied = name in more or (name.startswith("__") and name not in _AT_CONSTRUCTION)
            is_called = is_function and (serves_a_library or is_implied)
            if name not in _NEVER_ASKED and (is_called or name in self.names):
                inner.append(self._class_member(value, name, member, site))
        fact = f"class {value.__module__}.{value.__qualname__}"
        return self._guard(fetch, key, Check.IDENTITY, value, inner, label, site, fact)

    def _class_member(self, value: Any, name: str, member: Any, site: _Site) -> Guard:
        label = f"'{name}' of {value.__name__}"
        if isinstance(member, (staticmethod, classmethod, types.FunctionType)):
            function = getattr(member, "__func__", member)
            return self.describe(function, Fetch.METHOD, name, label, site)
        if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType):
            return self._same(member, Fetch.ATTRIBUTE, name, label, site)  # a slot
        look = functools.partial(_static, name)
        return self.describe(member, Fetch.VIA, look, label, site)

    # -- objects ---------------------------------------------------------------------------------------------------

    def instance(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        cls = type(value)
        if isinstance(value, enum.Enum):
            return self._guard(fetch, key, Check.IDENTITY, value, (), label, site, f"{cls.__qualname__}.{value.name}")
        if cls.__module__.startswith("opwright.") and callable(getattr(value, "reference", None)):
            reference = self.describe(value.reference, Fetch.ATTRIBUTE, "reference", label, site)
            return self._guard(fetch, key, Check.IDENTITY, value, (reference,), label, site, "operator")
        if cls.__module__ == "typing":
            return self._guard(fetch, key, Check.IDENTITY, value, (), label, site, repr(value))
        if is_installed(cls.__module__) and hasattr(cls, "__get__") and not hasattr(value, "__dict__"):
            return self._same(value, fetch, key, label, site)  # a descriptor, such as a field of a named tuple
        if is_installed(cls.__module__) and not isinstance(value, _HOLDERS):
            return self._unknown(value, fetch, key, label, site)
        if is_third_party(cls.__module__, self.own) and not hasattr(value, "__dict__"):
            return self._unknown(value, fetch, key, label, site)
        inner: list[Guard] = [
            self._class(cls, Fetch.VIA, type, f"class of {label}", site) if id(cls) not in self.seen
            else self._same(cls, Fetch.VIA, type, f"class of {label}", site),
            *self._attributes(value, label, site),
            *self._contents_of(value, label, site),
        ]  # fmt: skip
        return self._guard(fetch, key, Check.TYPE, cls, inner, label, site, cls.__qualname__)

    def _attributes(self, value: Any, label: str, site: _Site) -> Iterator[Guard]:
        cls, held = type(value), getattr(value, "__dict__", None)
        for name in sorted(self._counting(dict.fromkeys(name for base in cls.__mro__ for name in _slots(base)))):
            found = _static_value(value, name)
            if found is ABSENT:
                yield self._nothing(Fetch.ATTRIBUTE, name, f"{_short(label)}.{name}", site)
            else:
                yield self.describe(found, Fetch.ATTRIBUTE, name, f"{_short(label)}.{name}", site)
        if isinstance(held, dict):
            of_class = {name for name in self.names if inspect.getattr_static(cls, name, ABSENT) is not ABSENT}
            inner = list(self._held(held, label, site, of_class))
            yield self._guard(Fetch.ATTRIBUTE, "__dict__", Check.TYPE, dict, inner, label, site, "attributes")

    def _held(self, held: Mapping[str, Any], label: str, site: _Site, hidden: Set[str]) -> Iterator[Guard]:
        """Attributes, and that there are none of some names: one would take the place of what is read instead."""
        for name in sorted(self._counting(held)):
            yield self.describe(held[name], Fetch.ITEM, name, f"{_short(label)}.{name}", site)
        for name in sorted((self.asked | hidden) - held.keys()):
            yield self._nothing(Fetch.ITEM, name, f"{_short(label)}.{name}", site)

    def _nothing(self, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        return self._guard(fetch, key, Check.IDENTITY, ABSENT, (), label, site, "nothing")

    def _counting(self, held: Mapping[str, Any]) -> set[str]:
        return set(held) if self.every_name else set(self.names & held.keys())

    def _contents_of(self, value: Any, label: str, site: _Site) -> Iterator[Guard]:
        if isinstance(value, dict):
            yield from self._items(value, label, site)
        elif isinstance(value, (list, tuple)):
            yield from self._members(value, label, site)

    def torch_module(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        """A module: its plain attributes, its hooks and its children; what uses its tensors has no kernels anyway."""
        cls, held = type(value), vars(value)
        is_own = not is_installed(cls.__module__)
        wanted = self._counting(held) | {"training"} if is_own else {n for n in held if not n.startswith("_")}
        inner = [self._class(cls, Fetch.VIA, type, f"class of {label}", site)] if id(cls) not in self.seen else []
        for name in sorted(wanted - {"_modules", "_parameters", "_buffers"} | (_HOOKS & held.keys())):
            inner.append(self.describe(held[name], Fetch.ATTRIBUTE, name, f"{_short(label)}.{name}", site))
        children = [
            self.describe(child, Fetch.ITEM, name, f"{_short(label)}.{name}", site)
            for name, child in value._modules.items()
        ]
        inner.append(
            self._guard(
                Fetch.ATTRIBUTE, "_modules", Check.TYPE, type(value._modules), children, label, site, "children"
            )
        )
        return self._guard(fetch, key, Check.TYPE, cls, inner, label, site, cls.__qualname__)

    def context_variable(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        held = value.get(ABSENT)
        what = f"context variable {label}"
        inner = (
            self._guard(Fetch.CONTEXT, None, Check.IDENTITY, ABSENT, (), what, site, "unset")
            if held is ABSENT
            else self.describe(held, Fetch.CONTEXT, None, what, site)
        )
        return self._guard(fetch, key, Check.IDENTITY, value, (inner,), label, site, f"context {value.name}")

    def tensor(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        """What uses its values has no kernels; its shape may be read."""
        inner = self._guard(Fetch.VIA, _about_tensor, Check.PLAIN, _about_tensor(value), (), label, site, None)
        return self._guard(fetch, key, Check.IDENTITY, value, (inner,), label, site, None)

    def array(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        if value.size > _MOST_MEMBERS or value.dtype.hasobject:
            return self._unknown(value, fetch, key, label, site, f"an array of {value.size} elements")
        inner = self.describe(_about_array(value), Fetch.VIA, _about_array, label, site)
        return self._guard(fetch, key, Check.TYPE, type(value), (inner,), label, site, "array")

    # -- containers ------------------------------------------------------------------------------------------------

    def mapping(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        if len(value) > _MOST_MEMBERS:
            return self._unknown(value, fetch, key, label, site, f"a {type(value).__name__} of {len(value)} members")
        items = list(self._items(value, label, site))
        return self._guard(fetch, key, Check.TYPE, type(value), items, label, site, type(value).__name__)

    def _items(self, value: Any, label: str, site: _Site) -> Iterator[Guard]:
        keys = tuple(value)
        fact = spelled(keys) if is_plain(keys) else None
        yield self._guard(Fetch.KEYS, None, Check.PLAIN, keys, (), f"keys of {label}", site, fact)
        for name in keys:
            yield self.describe(value[name], Fetch.ITEM, name, f"{_short(label)}[{name!r}]", site)

    def sequence(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        if len(value) > _MOST_MEMBERS:
            return self._unknown(value, fetch, key, label, site, f"a {type(value).__name__} of {len(value)} members")
        members, expected = list(self._members(value, label, site)), (type(value), len(value))
        return self._guard(fetch, key, Check.LENGTH, expected, members, label, site, f"{expected}")

    def _members(self, value: Any, label: str, site: _Site) -> Iterator[Guard]:
        for position, member in enumerate(value):
            yield self.describe(member, Fetch.INDEX, position, f"{_short(label)}[{position}]", site)

    def unordered(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        """A set, or a queue: compared by a copy."""
        if len(value) > _MOST_MEMBERS or not all(map(is_plain, value)):
            return self._unknown(value, fetch, key, label, site)
        look = tuple if isinstance(value, collections.deque) else frozenset
        inner = self.describe(look(value), Fetch.VIA, look, label, site)
        return self._guard(fetch, key, Check.TYPE, type(value), (inner,), label, site, type(value).__name__)

    def view(self, value: Any, fetch: Fetch, key: Any, label: str, site: _Site) -> Guard:
        """A read-only dict, or a number of others."""
        inner = self.describe(dict(value), Fetch.VIA, dict, label, site)
        return self._guard(fetch, key, Check.TYPE, type(value), (inner,), label, site, type(value).__name__)


_KINDS: tuple[tuple[Any, Callable[..., Guard]], ...] = (
    (types.FunctionType, _Walk.function),
    (types.MethodType, _Walk.method),
    (types.BuiltinFunctionType, _Walk.builtin),
    ((staticmethod, classmethod, functools._lru_cache_wrapper), _Walk.wrapper),
    (functools.partial, _Walk.partial),
    (property, _Walk.property),
    (types.ModuleType, _Walk.module),
    (type, _Walk.kind),
    (torch.Tensor, _Walk.tensor),
    (torch.nn.Module, _Walk.torch_module),
    (numpy.ndarray, _Walk.array),
    (ContextVar, _Walk.context_variable),
    (
        (types.MethodDescriptorType, types.WrapperDescriptorType, types.GenericAlias, types.UnionType, numpy.ufunc,
         torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops._OpNamespace, types.MethodWrapperType),
        _Walk._same,
    ),
    ((types.MappingProxyType, collections.ChainMap), _Walk.view),
)  # fmt: skip
# Containers of Python's own; a subclass is an object with contents.
_EXACT: Mapping[type, Callable[..., Guard]] = {
    dict: _Walk.mapping,
    collections.OrderedDict: _Walk.mapping,
    collections.defaultdict: _Walk.mapping,
    collections.Counter: _Walk.mapping,
    list: _Walk.sequence,
    tuple: _Walk.sequence,
    set: _Walk.unordered,
    frozenset: _Walk.unordered,
    collections.deque: _Walk.unordered,
}


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return ABSENT


def _module_named(name: str, package: str, *, at_once: bool) -> str | None:
    """The full name of a module that is loaded; one that any call imports is imported now. None if there is none."""
    for full in (name, f"{package}.{name}" if package and name else package):
        if full in sys.modules:
            return full
    if not at_once or not name:
        return None
    try:
        return importlib.import_module(name).__name__
    except Exception:  # the call will say it
        return None


def _get_sys(_: object) -> types.ModuleType:
    return sys


def _variable(name: str, _: object) -> str | None:
    return os.environ.get(name)


def _static(name: str, cls: type) -> Any:
    return inspect.getattr_static(cls, name)


_get_self = operator.attrgetter("__self__")
_get_function = operator.attrgetter("__func__")
_get_wrapped = operator.attrgetter("__wrapped__")


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _static_value(value: Any, name: str) -> Any:
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return ABSENT


def _about_tensor(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tuple(tensor.shape), tensor.dtype, tensor.device, tensor.requires_grad)


def _about_array(array: Any) -> tuple[Any, ...]:
    return (array.dtype, array.shape, array.tobytes())


def _short(label: str) -> str:
    return label.removeprefix("global ").removeprefix("module ").replace("'", "")


def _spelled_code(code: types.CodeType) -> str:
    """A code object as text that is the same wherever it stands."""
    parts = [code.co_code.hex(), repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))]
    parts += [repr((code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount))]
    for constant in code.co_consts:
        parts.append(_spelled_code(constant) if isinstance(constant, types.CodeType) else spelled(constant))
    return " ".join(parts)
