"""Guards: values from outside, the ways to fetch them again, and what they were.

guard = Guard(fetch, key, check, expected, guards of what is in the value)

The function is the first value. `native/guards.h` does the same in C++, from the same numbers.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from opwright.errors import Place
from opwright.tracing.outside.plain import are_same


class _Absent:
    """Stands for what is not there."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def content(cell: types.CellType) -> Any:
    """What a variable of a closure holds; ABSENT if it is not assigned yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def slots_of_class(cls: type) -> list[str]:
    """The attributes for which a class itself has slots."""
    held = vars(cls) if "__slots__" in vars(cls) else {}
    return [name for name, member in held.items() if isinstance(member, types.MemberDescriptorType)]


class Fetch(IntEnum):
    """How a value is found in the one that it is in."""

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
    VIA = 13  # what the key, a function, gives
    KNOWN = 14  # the key itself, which is never exchanged for another


class Check(IntEnum):
    """What is asked of a value."""

    NOTHING = 0
    PLAIN = 1  # it is the same plain value
    IDENTITY = 2
    TYPE = 3
    LENGTH = 4  # it is of this type and length


@dataclass(frozen=True, slots=True)
class Guard:
    """One value from outside.

    Attributes:
        fetch: How it is found in the value of the guard that this one stands in.
        key: A name, a position, or what else `fetch` needs.
        check: What is asked of it.
        expected: What the answer was.
        guards: Those of what is in the value.
        label: What it is called, as in "global 'scale'".
        place: A line that reads it.
        fact: What it is, for records on disk: the same text for the same value in any process; None if no text tells.
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


def first_failing(guard: Guard, parent: Any) -> Guard | None:
    """The first guard that does not hold; None if all do.

    Args:
        guard: A guard, with those that stand in it.
        parent: The value that its own is found in.
    """
    try:
        value = _FETCHES[guard.fetch](parent, guard.key)
    except Exception:
        value = ABSENT
    if value is ABSENT:
        return None if guard.expected is ABSENT else guard
    if not _CHECKS[guard.check](value, guard.expected):
        return guard
    for inner in guard.guards:
        if (failing := first_failing(inner, value)) is not None:
            return failing
    return None


def facts_of(guard: Guard) -> Iterator[str | None]:
    """The facts of a guard and of all that stand in it."""
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
    Fetch.ITEM: lambda value, key: value.get(key, ABSENT),
    Fetch.INDEX: lambda value, key: value[key],
    Fetch.KEYS: lambda value, _: tuple(value),
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
    Fetch.KNOWN: lambda _, key: key,
}
_CHECKS: Mapping[Check, Callable[[Any, Any], bool]] = {
    Check.NOTHING: lambda value, expected: expected is not ABSENT,
    Check.PLAIN: are_same,
    Check.IDENTITY: lambda value, expected: value is expected,
    Check.TYPE: lambda value, expected: type(value) is expected,
    Check.LENGTH: lambda value, expected: type(value) is expected[0] and len(value) == expected[1],
}
