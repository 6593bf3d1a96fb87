"""Guards of modules and classes: of the members that some code names."""

from __future__ import annotations

import abc
import enum
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import torch

from opwright.introspection import annotations_of
from opwright.settings import reads_environment
from opwright.tracing.outside.code.instructions import DYNAMIC
from opwright.tracing.outside.guard import Check, Fetch, Guard
from opwright.tracing.outside.plain import computes_in_decimal, is_plain
from opwright.tracing.outside.purity import (
    answers_otherwise,
    asks_torch,
    holds_constants,
    is_installed,
    is_own,
    module_of,
    needs_gradients_recorded,
)
from opwright.tracing.outside.rules.abstract import registered_with
from opwright.tracing.outside.walk import Walk, Way

_OF_PYTHON = frozenset({"__dict__", "__weakref__"})  # what Python makes for every class
# Methods of modules that no forward pass calls without naming them; a user's class may have others of these names.
_BESIDE_FORWARD = frozenset({
    "apply", "compile", "cpu", "cuda", "double", "eval", "extra_repr", "float", "get_extra_state", "half", "ipu",
    "load_state_dict", "requires_grad_", "set_extra_state", "share_memory", "state_dict", "to", "to_empty", "train",
    "type", "xpu", "zero_grad", "_apply", "_load_from_state_dict", "_save_to_state_dict", "bfloat16", "mtia",
})  # fmt: skip
_AT_CONSTRUCTION = frozenset({"__init__", "__new__", "__post_init__"})
_NEVER_ASKED = frozenset({
    "__repr__", "__str__", "__format__", "__del__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
    "__dict__", "__weakref__", "__doc__", "__module__", "__sizeof__",
    "__annotations__", "__qualname__", "__dataclass_fields__", "__dataclass_params__", "__slots__",
    "__static_attributes__", "__firstlineno__", "__orig_bases__", "__parameters__", "__abstractmethods__",
    "__slotnames__", "_abc_impl", "__dir__", "__copy__", "__deepcopy__", "__annotate__", "__annotations_cache__",
})  # fmt: skip


def module(walk: Walk, value: Any, way: Way) -> Guard:
    """A module."""
    walk.known.add(id(value))
    if "__getattr__" in vars(value) and is_installed(value.__name__):  # NumPy loads `numpy.random` on first access
        for name in walk.names.intersection(getattr(value, "__all__", ())):
            getattr(value, name, None)
    members = vars(value)
    is_library = is_installed(value.__name__)
    follow = _of_library if is_library else _of_user
    inner = [guard for name in sorted(walk.names & members.keys()) for guard in follow(walk, value, name, way)]
    if is_installed(module_of(type(value))):
        inner += () if _is_without_settings(value) else _settings(walk, value, way)
    else:
        inner.append(class_of(walk, type(value), way.to(Fetch.VIA, type, f"class of {way.label}")))
    if "__getattr__" in members and not is_library:  # called for missing attributes
        inner += _of_user(walk, value, "__getattr__", way)
        absent = (walk.names | walk.asked) - members.keys()
    else:
        absent = frozenset() if is_library else walk.asked - members.keys()
    if absent:
        none = [walk.nothing(way.member(Fetch.ITEM, name)) for name in sorted(absent)]
        held = way.to(Fetch.ATTRIBUTE, "__dict__", f"attributes of {way.label}")
        inner.append(walk.guard(held, Check.TYPE, dict, "attributes", none))
    return walk.guard(way, Check.IDENTITY, value, f"module {value.__name__}", inner)


def _of_user(walk: Walk, value: Any, name: str, way: Way) -> Iterator[Guard]:
    yield walk.describe(vars(value)[name], way.member(Fetch.ATTRIBUTE, name))


_OF_STATE = (answers_otherwise, asks_torch, computes_in_decimal, needs_gradients_recorded)


def _of_library(walk: Walk, value: Any, name: str, way: Way) -> Iterator[Guard]:
    """A member of Python, torch or NumPy: guard settings, and functions whose answers vary."""
    found, inside = vars(value)[name], way.member(Fetch.ATTRIBUTE, name)
    if isinstance(found, types.ModuleType):
        if id(found) not in walk.known and is_installed(found.__name__):
            guard = module(walk, found, inside)
            yield from (guard,) if guard.guards else ()
    elif reads_environment(found):
        return  # variables are guarded one by one
    elif callable(found):
        is_replaced = isinstance(found, types.FunctionType) and not is_installed(found.__globals__.get("__name__"))
        is_state = any(tells(found) for tells in _OF_STATE)
        if is_state or is_replaced or isinstance(found, abc.ABCMeta):
            yield walk.describe(found, inside)
        else:
            yield walk.same(found, inside)  # it may be exchanged
    elif is_plain(found):
        if not holds_constants(value.__name__):
            yield walk.describe(found, inside)
    elif type(found).__module__.startswith("torch.backends"):
        if settings := tuple(_settings(walk, found, inside)):
            yield walk.guard(inside, Check.IDENTITY, found, "settings", settings)
    elif found is sys.modules:
        yield walk.unknown(found, inside, "a dict that grows")
    elif isinstance(found, (ContextVar, type(sys.stdout))) or _is_state(value, found):
        yield walk.describe(found, inside)


def _is_state(module: types.ModuleType, found: Any) -> bool:
    """Whether it is a variable of a Python module that programs write to, such as `sys.argv`."""
    return module.__name__ in sys.stdlib_module_names and isinstance(found, (list, dict, MutableMapping))


def _is_without_settings(module: types.ModuleType) -> bool:
    """Whether a module is a plain one, or torch's operations by name, which takes long to say what it has not."""
    return type(module) is types.ModuleType or type(module).__module__ == "torch._ops"


def _settings(walk: Walk, value: Any, way: Way) -> Iterator[Guard]:
    """Settings that torch keeps in objects with properties, such as `torch.backends.cuda.matmul.allow_tf32`."""
    for name in sorted(walk.names - vars(value).keys()):
        found = value
        with suppress(Exception):  # `torch.classes` raises a RuntimeError for what it does not have
            found = getattr(value, name, value)
        if is_plain(found):
            yield walk.describe(found, way.to(Fetch.VIA, operator.attrgetter(name), f"{way.short}.{name}"))


def class_called(walk: Walk, value: Any, way: Way) -> Guard:
    """A class that is named, so that it may be called."""
    return class_of(walk, value, way, _AT_CONSTRUCTION)


def class_of(walk: Walk, value: Any, way: Way, also: frozenset[str] = frozenset()) -> Guard:
    """A class: members that are named, and methods that Python or torch calls without naming them."""
    if is_installed(module_of(value)):
        walk.met_dynamic = walk.met_dynamic or value.__name__ in DYNAMIC  # `operator.attrgetter` by another name
        if answers_otherwise(value):
            return walk.unknown(value, way, f"what {value.__name__} gives")
        inside = (*_forward_of(walk, value, way), *walk.decimals(value, way), *registered_with(walk, value, way))
        return walk.same(value, way, inside)
    if walk.ran is not None and issubclass(value, torch.autograd.Function):  # its backward pass runs after the forward
        with walk.searching_all():
            return class_of(walk, value, way, also)
    kind = (id(value), also, walk.ran is None)
    if kind in walk.known:
        return walk.guard(way, Check.IDENTITY, value, "again")
    walk.known.add(kind)
    inner = [_member(walk, cls, name, way, is_hidden) for cls, name, is_hidden in _counting(walk, value, also)]
    look = functools.partial(_present, walk.names | walk.asked)
    inner.append(walk.describe(look(value), way.to(Fetch.OF_CLASS, look, f"members of {way.label}")))
    if walk.every_name:
        inner.append(walk.describe(_names_in(value), way.to(Fetch.OF_CLASS, _names_in, f"members of {way.label}")))
    if not is_installed(module_of(type(value))):
        inner.append(class_of(walk, type(value), way.to(Fetch.VIA, type, f"class of {way.label}")))
    inner += registered_with(walk, value, way)
    inner.append(_bases(walk, value, way))
    if isinstance(value, enum.EnumMeta):
        inner.append(_members_of_enum(walk, value, way))
    if "__subclasses__" in walk.names:
        derived = walk.describe(_derived(value), way.to(Fetch.VIA, _derived, f"subclasses of {way.label}"))
        inner.append(derived)
    _note_members_of_protocol(walk, value)
    return walk.guard(way, Check.IDENTITY, value, f"class {value.__module__}.{value.__qualname__}", inner)


def alias(walk: Walk, value: Any, way: Way) -> Guard:
    """A generic class with arguments, such as `Holder[int]`, which hands on what it is asked for."""
    origin = walk.describe(value.__origin__, way.to(Fetch.MEMBER, "__origin__", way.label))
    return walk.guard(way, Check.IDENTITY, value, repr(value), (origin,))


def _bases(walk: Walk, value: type, way: Way) -> Guard:
    """The bases of a class, to which `C.__bases__ = (...)` may add one."""
    order = _order(value)
    told = " ".join(f"{base.__module__}.{base.__qualname__}" for base in order)
    return walk.guard(way.to(Fetch.OF_CLASS, _order, f"bases of {way.label}"), Check.IDENTITY, order, told)


def _members_of_enum(walk: Walk, value: enum.EnumMeta, way: Way) -> Guard:
    """The members of an enum that hold something which may change, as `for each in Mode` finds them without a name."""
    inside = way.to(Fetch.ATTRIBUTE, "_member_map_", f"members of {way.label}")
    held = [(name, each) for name, each in value._member_map_.items() if not is_plain(each._value_)]
    inner = [walk.describe(each, inside.to(Fetch.ITEM, name, f"{way.short}.{name}")) for name, each in held]
    return walk.guard(inside, Check.TYPE, dict, "members", inner)


def _order(cls: type) -> tuple[type, ...]:
    return type.__dict__["__mro__"].__get__(cls)  # type: ignore[no-any-return]  # also where a metaclass hides it


def _derived(cls: type) -> tuple[type, ...]:
    return tuple(type.__subclasses__(cls))


def _note_members_of_protocol(walk: Walk, value: type) -> None:
    """Note the attributes that `isinstance` asks for where a class is a protocol."""
    if not vars(value).get("_is_protocol"):
        return
    for base in _order(value):
        if not is_installed(module_of(base)):
            names = {*vars(base), *annotations_of(base)} - _NEVER_ASKED
            walk.met_names |= names
            walk.met_asked |= names


def _forward_of(walk: Walk, value: type, way: Way) -> Iterator[Guard]:
    """The forward of a class of torch's modules, which libraries exchange for faster ones."""
    if issubclass(value, torch.nn.Module) and id(value) not in walk.known:
        walk.known.add(id(value))
        yield walk.same(value.forward, way.to(Fetch.METHOD, "forward", f"'forward' of {value.__name__}"))


def _counting(walk: Walk, value: Any, also: frozenset[str]) -> Iterator[tuple[Any, str, bool]]:
    """The relevant members, with their defining classes, and whether only `super()` reaches them."""
    is_called = _called_by_torch(value)
    met = set[str]()
    for cls in value.__mro__:
        for name, member in () if is_installed(module_of(cls)) else sorted(vars(cls).items()):
            is_asked = callable(member) or hasattr(type(member), "__get__")
            is_implied = name in also or (name.startswith("__") and name not in _AT_CONSTRUCTION | _NEVER_ASKED)
            may_be_asked = walk.every_name and name not in _NEVER_ASKED and not is_own(type(member).__module__)
            is_named = name in walk.names or may_be_asked
            if (is_named and name not in _OF_PYTHON) or (is_asked and (is_implied or is_called(name))):
                yield cls if name in met else value, name, name in met
        met |= vars(cls).keys()


def _called_by_torch(value: type) -> Callable[[str], bool]:
    """Tells which methods of a class torch may call without naming them in the user's code."""
    if issubclass(value, torch.nn.Module):
        of_modules = {name for name in vars(torch.nn.Module) if not name.startswith("__")} | {"forward"}
        return (of_modules - _BESIDE_FORWARD).__contains__
    if any(cls.__module__.partition(".")[0] == "torch" for cls in value.__mro__):
        return lambda name: name not in _NEVER_ASKED
    return lambda _: False


def _names_in(cls: type) -> tuple[str, ...]:
    """The names of the members of a class and of its bases that are the user's."""
    return tuple(name for base in cls.__mro__ if not is_installed(module_of(base)) for name in base.__dict__)


def _present(names: frozenset[str], cls: type) -> tuple[str, ...]:
    """Which members of some names a class has, and which that Python asks for without naming them."""
    held = {name for base in cls.__mro__ if not is_installed(module_of(base)) for name in base.__dict__}
    return tuple(sorted(name for name in held if name in names or is_asked_by_python(name)))


def is_asked_by_python(name: str) -> bool:
    """Whether Python looks for a member of a class that code does not name."""
    return name.startswith("__") and name.endswith("__") and name not in _NEVER_ASKED | _AT_CONSTRUCTION


def _member(walk: Walk, value: Any, name: str, way: Way, is_hidden: bool) -> Guard:
    """A member of a class; a hidden one is fetched from the class that defines it."""
    member, label = _static(name, value), f"'{name}' of {value.__name__}"
    if is_hidden:
        return walk.describe(member, way.to(Fetch.OF_CLASS, functools.partial(_static_of, value, name), label))
    if isinstance(member, (staticmethod, classmethod, types.FunctionType)):
        return walk.describe(getattr(member, "__func__", member), way.to(Fetch.METHOD, name, label))
    if isinstance(member, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return walk.same(member, way.to(Fetch.ATTRIBUTE, name, label))  # a slot
    if not hasattr(type(member), "__get__"):
        return walk.describe(member, way.to(Fetch.ATTRIBUTE, name, label))
    return walk.describe(member, way.to(Fetch.OF_CLASS, functools.partial(_static, name), label))


def _static(name: str, cls: type) -> Any:
    return next(vars(base)[name] for base in cls.__mro__ if name in vars(base))


def _static_of(base: type, name: str, _: type) -> Any:
    return base.__dict__[name]


def cached_property(walk: Walk, value: Any, way: Way) -> Guard:
    """A cached property, whose value is an attribute of the object."""
    inner = walk.describe(value.func, way.to(Fetch.MEMBER, "func", way.label))
    return walk.guard(way, Check.IDENTITY, value, "cached property", (inner,))


def property_of(walk: Walk, value: Any, way: Way) -> Guard:
    """A property, which is the function behind it."""
    inner = walk.describe(value.fget, way.to(Fetch.MEMBER, "fget", way.label))
    return walk.guard(way, Check.IDENTITY, value, "property", (inner,))
