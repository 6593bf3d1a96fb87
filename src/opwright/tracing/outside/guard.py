"""Guards: values from outside, how to fetch them again, and what they were.

guard = Guard(fetch, key, check, expected, guards of what is in the value)

The root is the function. `native/guards.h` does the same in C++, with the same numbers.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch

from opwright.errors import Place
from opwright.tracing.outside.plain import are_same
from opwright.tracing.outside.unasked import ABSENT, item_of, keys_of, length_of, member_of


class Fetch(IntEnum):
    """How to fetch a value from its parent."""

    SELF = 0
    ITEM = 1  # of a dict
    INDEX = 2  # of a list or tuple
    KEYS = 3  # of a dict, in order
    CODE = 4
    GLOBALS = 5
    DEFAULTS = 6
    KEYWORD_DEFAULTS = 7
    CELL = 8
    ATTRIBUTE = 9
    METHOD = 10  # an attribute; of a bound method its function
    CALL = 11
    CONTEXT = 12
    VIA = 13  # the result of the key, a function
    KNOWN = 14  # the key itself, which is never replaced
    OF_CLASS = 15  # the result of the key, a function of the members of a class and its bases
    MEMBER = 16  # of an object of Python's, such as the function of a method


class Check(IntEnum):
    """What to test of a value."""

    NOTHING = 0
    PLAIN = 1  # it is the same plain value
    IDENTITY = 2
    TYPE = 3
    LENGTH = 4  # it is of this type and length
    SLOT = 5  # it is a tensor, or of this type, and the only value in a slot: (type or None, slot)


@dataclass(frozen=True, slots=True)
class Guard:
    """One value from outside.

    Attributes:
        fetch: How to fetch it from the value of the parent guard.
        key: A name, a position, or whatever `fetch` needs.
        check: What to test.
        expected: The expected outcome.
        guards: The guards of its members.
        label: Its name, as in "global 'scale'".
        place: A line that reads it.
        fact: The value for records on disk, as the same text in any process; None if it has none.
    """

    fetch: Fetch
    key: Any
    check: Check
    expected: Any
    guards: tuple[Guard, ...]
    label: str
    place: Place | None
    fact: str | None

    @property
    def spec(self) -> tuple[Any, ...]:
        """The guard for C++."""
        inner = tuple([guard.spec for guard in self.guards])
        return (int(self.fetch), self.key, int(self.check), self.expected, inner)


def first_failing(guard: Guard, parent: Any, slots: dict[int, Any] | None = None) -> Guard | None:
    """The first guard that does not hold; None if all do.

    Args:
        guard: A guard, with those inside it.
        parent: The parent of its value.
        slots: Gets the values in slots.
    """
    slots = {} if slots is None else slots
    try:
        value = _FETCHES[guard.fetch](parent, guard.key)
    except Exception:
        value = ABSENT
    if value is ABSENT:
        return None if guard.expected is ABSENT else guard
    if not _CHECKS[guard.check](value, guard.expected):
        return guard
    if guard.check is Check.SLOT and slots.setdefault(guard.expected[1], value) is not value:
        return guard
    for inner in guard.guards:
        if (failing := first_failing(inner, value, slots)) is not None:
            return failing
    return None


def values_in_slots(guard: Guard, parent: Any, slots: dict[int, Any]) -> None:
    """Fill slots without comparing anything, as in a trace, which has modes of its own."""
    try:
        value = _FETCHES[guard.fetch](parent, guard.key)
    except Exception:
        return
    if guard.check is Check.SLOT and value is not ABSENT:
        slots.setdefault(guard.expected[1], value)
    for inner in guard.guards:
        values_in_slots(inner, value, slots)


def are_distinct(slots: Mapping[int, Any]) -> bool:
    """Whether every slot has a value of its own."""
    return len(set(map(id, slots.values()))) == len(slots)


def facts_of(guard: Guard) -> Iterator[str | None]:
    """The facts of a guard and of all inside it."""
    yield guard.fact
    for inner in guard.guards:
        yield from facts_of(inner)


def count(guard: Guard) -> int:
    """How many values are compared."""
    return 1 + sum(map(count, guard.guards))


def _attribute(value: Any, name: str) -> Any:
    if isinstance(value, type):
        return type.__getattribute__(value, name)
    return object.__getattribute__(value, name)


def _method(value: Any, name: str) -> Any:
    found = _attribute(value, name)
    return found.__func__ if isinstance(found, types.MethodType) else found


_FETCHES: Mapping[Fetch, Callable[[Any, Any], Any]] = {
    Fetch.SELF: lambda value, _: value,
    Fetch.ITEM: item_of,
    Fetch.INDEX: member_of,
    Fetch.KEYS: lambda value, _: keys_of(value),
    Fetch.CODE: lambda value, _: value.__code__,
    Fetch.GLOBALS: lambda value, _: value.__globals__,
    Fetch.DEFAULTS: lambda value, _: value.__defaults__,
    Fetch.KEYWORD_DEFAULTS: lambda value, _: value.__kwdefaults__,
    Fetch.CELL: lambda value, key: value.__closure__[key].cell_contents,
    Fetch.ATTRIBUTE: _attribute,
    Fetch.METHOD: _method,
    Fetch.CALL: lambda value, _: value(),
    Fetch.CONTEXT: lambda value, _: value.get(ABSENT),
    Fetch.VIA: lambda value, key: key(value),
    Fetch.OF_CLASS: lambda value, key: key(value),
    Fetch.MEMBER: object.__getattribute__,
    Fetch.KNOWN: lambda _, key: key,
}
_CHECKS: Mapping[Check, Callable[[Any, Any], bool]] = {
    Check.NOTHING: lambda value, expected: expected is not ABSENT,
    Check.PLAIN: are_same,
    Check.IDENTITY: lambda value, expected: value is expected,
    Check.TYPE: lambda value, expected: type(value) is expected,
    Check.LENGTH: lambda value, expected: type(value) is expected[0] and length_of(value) == expected[1],
    Check.SLOT: lambda value, expected: (
        isinstance(value, torch.Tensor) if expected[0] is None else type(value) is expected[0]
    ),
}
