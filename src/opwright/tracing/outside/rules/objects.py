"""Guards of objects: attributes, and the contents of context variables, layers, tensors and arrays."""

from __future__ import annotations

import enum
import logging
import pathlib
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy
import torch

from opwright.tracing.outside.guard import Check, Fetch, Guard
from opwright.tracing.outside.plain import is_plain, spelled
from opwright.tracing.outside.purity import is_installed, is_third_party, module_of
from opwright.tracing.outside.rules.classes import class_of
from opwright.tracing.outside.rules.contents import HOLDERS, contents, is_known
from opwright.tracing.outside.rules.layers import tensor_of_module
from opwright.tracing.outside.unasked import ABSENT, is_a, length_of, names_of_class, slots_of_class
from opwright.tracing.outside.walk import Follow, Walk, Way

MOST_ELEMENTS = 64
# Python classes whose methods read only attributes that code names.
_BARE = frozenset({"builtins", "abc", "typing", "enum", "typing_extensions", *(each.__module__ for each in HOLDERS)})
_ASKING_THE_DISK = frozenset(dir(pathlib.Path)) - frozenset(dir(pathlib.PurePath))


def instance(walk: Walk, value: Any, way: Way) -> Guard:
    """An object of any class: its class, its attributes, and the members of one that is a container."""
    cls = type(value)
    if is_a(value, enum.Enum):
        held = spelled(value.value) if is_plain(value.value) else type(value.value).__qualname__
        inner = () if is_installed(module_of(cls)) else _of_member(walk, value, way)
        return walk.guard(way, Check.IDENTITY, value, f"{cls.__qualname__}.{value.name} {held}", inner)
    if cls.__module__.startswith("opwright.") and callable(getattr(value, "reference", None)):
        reference = walk.describe(value.reference, way.to(Fetch.ATTRIBUTE, "reference", way.label))
        return walk.guard(way, Check.IDENTITY, value, "operator", (reference,))
    if cls.__module__ in ("typing", "dataclasses"):
        return walk.guard(way, Check.IDENTITY, value, repr(value))
    if is_installed(module_of(cls)) and hasattr(cls, "__get__") and not hasattr(value, "__dict__"):
        return walk.same(value, way)  # a descriptor, such as a field of a named tuple
    if is_a(value, threading.local) or (is_installed(module_of(cls)) and not is_a(value, HOLDERS)):
        return walk.unknown(value, way)
    if (
        is_third_party(cls.__module__, walk.own)
        and not hasattr(value, "__dict__")
        and not any(map(slots_of_class, cls.__mro__))
    ):
        return walk.unknown(value, way)
    if not is_known(value):
        return walk.unknown(value, way)
    class_guards = () if cls in HOLDERS else (_class(walk, cls, way),)
    inner = (*class_guards, *_attributes(walk, value, way), *contents(walk, value, way))
    if is_a(value, (list, tuple)):
        expected = (cls, length_of(value))
        return walk.guard(way, Check.LENGTH, expected, f"{cls.__qualname__} of {length_of(value)}", inner)
    return walk.guard(way, Check.TYPE, cls, cls.__qualname__, inner)


def _of_member(walk: Walk, value: enum.Enum, way: Way) -> tuple[Guard, ...]:
    """What a member of an enum holds: its value may be a list, say."""
    held = walk.describe(value._value_, way.member(Fetch.ATTRIBUTE, "_value_"))
    return (_class(walk, type(value), way), held, *_attributes(walk, value, way))


def _class(walk: Walk, cls: type, way: Way) -> Guard:
    return class_of(walk, cls, way.to(Fetch.VIA, type, f"class of {way.label}"))


def _attributes(walk: Walk, value: Any, way: Way) -> Iterator[Guard]:
    cls, held = type(value), _stored(value, "__dict__")
    is_read_elsewhere = _has_library_methods(walk, cls)
    slots = {name for base in cls.__mro__ for name in slots_of_class(base)}
    for name in sorted(slots) if is_read_elsewhere else walk.counting(slots):
        found, inside = _stored(value, name), way.member(Fetch.ATTRIBUTE, name)
        yield walk.nothing(inside) if found is ABSENT else walk.describe(found, inside)
    if isinstance(held, dict):
        of_class = names_of_class(cls).intersection(walk.names)
        inside = way.to(Fetch.ATTRIBUTE, "__dict__", way.label)
        counting = sorted(held) if is_read_elsewhere else walk.counting(held)
        yield walk.guard(inside, Check.TYPE, dict, "attributes", _held(walk, held, counting, of_class, way))


def _has_library_methods(walk: Walk, cls: type) -> bool:
    """Whether methods that are not searched may read attributes of objects."""
    if walk.ran is None and is_third_party(cls.__module__, walk.own):
        return True
    bases = [module for module in map(module_of, cls.__mro__) if module not in _BARE]
    return any(is_installed(each) or (walk.ran is None and is_third_party(each, walk.own)) for each in bases)


def _held(walk: Walk, held: Mapping[str, Any], counting: list[str], of_class: set[str], way: Way) -> Iterator[Guard]:
    """Attributes, and the absence of some names, which would shadow what is read."""
    if walk.every_name or (held and len(counting) == len(held)):
        yield walk.describe(tuple(held), way.to(Fetch.KEYS, None, f"attributes of {way.label}"))
    for name in counting:
        yield walk.describe(held[name], way.member(Fetch.ITEM, name))
    for name in sorted((walk.asked | of_class) - held.keys()):
        yield walk.nothing(way.member(Fetch.ITEM, name))


def _stored(value: Any, name: str) -> Any:
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return ABSENT


def with_attributes(follow: Follow) -> Follow:
    """A rule for objects of a kind of Python's that somebody may derive classes from, or give attributes to."""

    def followed(walk: Walk, value: Any, way: Way) -> Guard:
        guard = follow(walk, value, way)
        return replace(guard, guards=(*guard.guards, *_given(walk, value, way)))

    return followed


def _given(walk: Walk, value: Any, way: Way) -> Iterator[Guard]:
    """The class of the user's of such an object, and those of its attributes that code names."""
    cls, held = type(value), _stored(value, "__dict__")
    if not is_installed(module_of(cls)):
        yield _class(walk, cls, way)
        for name in walk.counting({name for base in cls.__mro__ for name in slots_of_class(base)}):
            found, inside = _stored(value, name), way.member(Fetch.ATTRIBUTE, name)
            yield walk.nothing(inside) if found is ABSENT else walk.describe(found, inside)
    if not isinstance(held, dict):
        return
    named = sorted(walk.names & held.keys() - {"__wrapped__"})
    absent = sorted(walk.asked - held.keys())
    if named or absent or walk.every_name:
        inner = [walk.describe(tuple(held), way.to(Fetch.KEYS, None, f"attributes of {way.label}"))]
        inner += [walk.describe(held[name], way.member(Fetch.ITEM, name)) for name in named]
        yield walk.guard(way.to(Fetch.ATTRIBUTE, "__dict__", way.label), Check.TYPE, dict, "attributes", inner)


def logger(walk: Walk, value: logging.Logger, way: Way) -> Guard:
    """A logger: its level, tested once. A line that it writes ends a trace."""
    kind = (id(value), "level")
    if kind in walk.known:
        return walk.guard(way, Check.IDENTITY, value, f"logger {value.name}")
    walk.known.add(kind)
    level = walk.describe(_threshold(value), way.to(Fetch.VIA, _threshold, f"level of {way.label}"))
    return walk.guard(way, Check.IDENTITY, value, f"logger {value.name}", (level,))


def _threshold(value: logging.Logger) -> tuple[Any, ...]:
    return (value.getEffectiveLevel(), value.disabled, value.manager.disable)


def path(walk: Walk, value: pathlib.Path, way: Way) -> Guard:
    """A path, as long as no code names a method that accesses the file system."""
    if not walk.names.isdisjoint(_ASKING_THE_DISK):
        return walk.unknown(value, way)
    return walk.guard(way, Check.PLAIN, value, repr(value))


def weak_reference(walk: Walk, value: Any, way: Way) -> Guard:
    """A weak reference, guarded as its object."""
    held = walk.describe(value(), way.to(Fetch.CALL, None, way.label and f"what {way.label} leads to"))
    return walk.guard(way, Check.TYPE, type(value), "weak reference", (held,))


def context_variable(walk: Walk, value: ContextVar[Any], way: Way) -> Guard:
    """A context variable has the value that it has in the context of the call."""
    held = value.get(ABSENT)
    inside = way.to(Fetch.CONTEXT, None, f"context variable {way.label}")
    if held is not ABSENT:
        return walk.guard(way, Check.IDENTITY, value, f"context {value.name}", (walk.describe(held, inside),))
    default = walk.describe(_default(value), way.to(Fetch.VIA, _default, f"default of {way.label}"))
    return walk.guard(way, Check.IDENTITY, value, f"context {value.name}", (walk.nothing(inside), default))


def _default(value: ContextVar[Any]) -> Any:
    try:
        return value.get()
    except LookupError:
        return None


def lock(walk: Walk, value: Any, way: Way) -> Guard:
    """A lock, as long as no code asks whether somebody holds it."""
    return walk.unknown(value, way) if "locked" in walk.names else walk.same(value, way)


def sentinel(walk: Walk, value: object, way: Way) -> Guard:
    """An `object()`, of which there is nothing to know but which one it is."""
    walk.known.add(id(value))
    return walk.guard(way, Check.IDENTITY, value, "object()")


def tensor(walk: Walk, value: torch.Tensor, way: Way) -> Guard:
    """A function that uses the values of an outside tensor has no kernels; it may read its shape."""
    if walk.layers is not None and _has_nothing(value):
        about = walk.describe(_about_tensor(value), way.to(Fetch.VIA, _about_tensor, f"shape of {way.label}"))
        return walk.guard(way, Check.TYPE, type(value), "empty", (about, *_attributes(walk, value, way)))
    if walk.layers is not None:
        return tensor_of_module(walk, walk.layers, value, way, _of_tensor(walk, value, way))
    inside = way.to(Fetch.VIA, _about_tensor, f"shape of {way.label}")
    shape = walk.guard(inside, Check.PLAIN, _about_tensor(value), None)
    return walk.guard(way, Check.IDENTITY, value, None, (shape, *_attributes(walk, value, way)))


def _has_nothing(value: torch.Tensor) -> bool:
    """Whether a tensor tells a function its shape alone: as an argument it would keep all calls from kernels."""
    return type(value) in (torch.Tensor, torch.nn.Parameter) and not value.requires_grad and value.numel() == 0


def _of_tensor(walk: Walk, value: torch.Tensor, way: Way) -> tuple[Guard, ...]:
    """The attributes that somebody gave a tensor: their names, and those that code names."""
    held = vars(value)
    if not held and not walk.asked and not walk.every_name:
        return ()
    inner = [walk.describe(tuple(held), way.to(Fetch.KEYS, None, f"attributes of {way.label}"))]
    inner += [walk.describe(held[name], way.member(Fetch.ITEM, name)) for name in walk.counting(held)]
    return (walk.guard(way.to(Fetch.ATTRIBUTE, "__dict__", way.label), Check.TYPE, dict, "attributes", inner),)


def _about_tensor(value: torch.Tensor) -> tuple[Any, ...]:
    return (tuple(value.shape), value.dtype, value.device, value.requires_grad)


def array(walk: Walk, value: Any, way: Way) -> Guard:
    """A NumPy array; a small one is compared with a copy."""
    if value.size > MOST_ELEMENTS or value.dtype.hasobject or is_a(value, numpy.ma.MaskedArray):
        return walk.unknown(value, way, f"an array of {value.size} elements")
    inner = walk.describe(_about_array(value), way.to(Fetch.VIA, _about_array, way.label))
    return walk.guard(way, Check.TYPE, type(value), "array", (inner,))


def _about_array(value: Any) -> tuple[Any, ...]:
    return (value.dtype, value.shape, value.strides, value.flags.num, value.tobytes())
