"""What an object of a class derived from a builtin holds besides attributes: a number, members, a state."""

from __future__ import annotations

import argparse
import collections
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

from opwright.tracing.outside.guard import Fetch, Guard
from opwright.tracing.outside.plain import is_plain
from opwright.tracing.outside.purity import is_installed, module_of
from opwright.tracing.outside.rules.containers import items, members
from opwright.tracing.outside.unasked import is_a
from opwright.tracing.outside.walk import Walk, Way

_WITHOUT_STATE = frozenset({"typing", "typing_extensions", "abc", "_abc", "collections.abc"})  # modules of bases


def _bytes_of(value: bytes) -> bytes:
    return bytes.__getitem__(value, slice(None))


def _members_of(value: collections.deque[Any]) -> tuple[Any, ...]:
    return tuple(collections.deque.__iter__(value))


# How to read the value of a builtin base as a plain one, bypassing the methods of the class.
_BARE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__pos__),
    (float, float.__pos__),
    (complex, complex.__pos__),
    (str, str.__str__),
    (bytes, _bytes_of),
    (set, frozenset),
    (frozenset, frozenset),
    (collections.deque, _members_of),
)
_ARGUMENTS = operator.attrgetter("args")  # of an exception
HOLDERS = (types.SimpleNamespace, argparse.Namespace)  # of attributes, and nothing else
_GUARDED = frozenset({object, dict, list, tuple, collections.OrderedDict, *HOLDERS, *(base for base, _ in _BARE)})


def contents(walk: Walk, value: Any, way: Way) -> Iterator[Guard]:
    """The guards of what an object's builtin bases hold."""
    for base, bare in _BARE:
        if is_a(value, base):
            yield walk.describe(bare(value), way.to(Fetch.VIA, bare, way.label))
    if is_a(value, BaseException):
        yield walk.describe(value.args, way.to(Fetch.VIA, _ARGUMENTS, f"arguments of {way.label}"))
    if is_a(value, dict):
        yield from items(walk, value, way)
    elif is_a(value, (list, tuple)):
        yield from members(walk, value, way)


def is_known(value: Any) -> bool:
    """Whether guards can cover everything that an object holds: attributes and `contents`."""
    bare = (bare(value) for base, bare in _BARE if is_a(value, base))
    return all(map(is_plain, bare)) and all(map(_is_written_in_python, _bases(type(value))))


def _bases(cls: type) -> Iterator[type]:
    """Bases from Python and other libraries, except those without state and those that `contents` covers."""
    return (
        base
        for base in cls.__mro__
        if base not in _GUARDED and is_installed(module_of(base)) and base.__module__ not in _WITHOUT_STATE
        if not (base.__module__ == "builtins" and issubclass(base, BaseException))
    )


def _is_written_in_python(cls: type) -> bool:
    return any(isinstance(member, types.FunctionType) for member in vars(cls).values())
