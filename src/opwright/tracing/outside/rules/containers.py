"""Guards of Python's own containers: of all members, if there are few."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable, Iterator
from typing import Any

from opwright.tracing.outside.guard import Check, Fetch, Guard
from opwright.tracing.outside.plain import is_plain, spelled, spelled_in_any_order
from opwright.tracing.outside.unasked import keys_of, members_of
from opwright.tracing.outside.walk import Walk, Way


def mapping(walk: Walk, value: Any, way: Way) -> Guard:
    """A dict: its keys in their order, and its values."""
    if len(value) > walk.most_members():
        return walk.unknown(value, way, f"a {type(value).__name__} of {len(value)} members")
    inner = list(items(walk, value, way))
    if isinstance(value, collections.defaultdict):
        factory = way.to(Fetch.ATTRIBUTE, "default_factory", f"default of {way.label}")
        inner.append(walk.describe(value.default_factory, factory))
    return walk.guard(way, Check.TYPE, type(value), type(value).__name__, inner)


def items(walk: Walk, value: Any, way: Way) -> Iterator[Guard]:
    """The guards of what is in a dict."""
    keys = keys_of(value)
    inside = way.to(Fetch.KEYS, None, f"keys of {way.label}")
    yield walk.guard(inside, Check.PLAIN, keys, spelled(keys) if is_plain(keys) else None)
    for position, key in enumerate(keys):
        if not is_plain(key):
            look = functools.partial(_key_at, position)
            yield walk.describe(key, way.to(Fetch.VIA, look, f"a key of {way.label}"))
        held = dict.__getitem__(value, key)  # a subclass may give something else, by code that is walked through
        yield walk.describe(held, way.to(Fetch.ITEM, key, f"{way.short}[{key!r}]"))


def _key_at(position: int, value: Any) -> Any:
    return keys_of(value)[position]


def sequence(walk: Walk, value: Any, way: Way) -> Guard:
    """A list, or a tuple with mutable members."""
    if len(value) > walk.most_members():
        return walk.unknown(value, way, f"a {type(value).__name__} of {len(value)} members")
    expected = (type(value), len(value))
    return walk.guard(way, Check.LENGTH, expected, f"{expected}", members(walk, value, way))


def members(walk: Walk, value: Any, way: Way) -> Iterator[Guard]:
    """The guards of what is in a list or tuple."""
    for position, member in enumerate(members_of(value)):
        yield walk.describe(member, way.to(Fetch.INDEX, position, f"{way.short}[{position}]"))


def unordered(walk: Walk, value: Any, way: Way) -> Guard:
    """A set or a queue, compared with a copy, in iteration order."""
    if len(value) > walk.most_members() or not is_comparable(value):
        return walk.unknown(value, way)
    inner = walk.describe(tuple(value), way.to(Fetch.VIA, tuple, way.label))
    return walk.guard(way, Check.TYPE, type(value), type(value).__name__, (inner,))


def is_comparable(value: Iterable[Any]) -> bool:
    """Whether the members of a set can be compared as a whole, whatever is done with them."""
    return all(map(is_plain, value))


def only_asked(walk: Walk, value: Any, way: Way) -> Guard:
    """A set that code only tests for members: on disk its order, which varies by process, is ignored.

    Of a class in it, what it contains does not matter.
    """
    if len(value) > walk.most_members() or not all(is_plain(member) or _is_class(member) for member in value):
        return walk.unknown(value, way)
    inside = way.to(Fetch.VIA, tuple, way.label)
    classes = sorted(f"{each.__module__}.{each.__qualname__}" for each in value if _is_class(each))
    fact = f"{classes} {spelled_in_any_order(each for each in value if not _is_class(each))}"
    inner = walk.guard(inside, Check.PLAIN, tuple(value), fact)
    return walk.guard(way, Check.TYPE, type(value), type(value).__name__, (inner,))


def _is_class(value: Any) -> bool:
    """Whether it is a class that equals no other one."""
    return isinstance(value, type) and type(value).__eq__ is type.__eq__


def view(walk: Walk, value: Any, way: Way) -> Guard:
    """A read-only dict."""
    inner = walk.describe(dict(value), way.to(Fetch.VIA, dict, way.label))
    return walk.guard(way, Check.TYPE, type(value), type(value).__name__, (inner,))


def chain(walk: Walk, value: collections.ChainMap[Any, Any], way: Way) -> Guard:
    """A chain of dicts: each of them, as code may ask for one behind the first."""
    inner = walk.describe(value.maps, way.to(Fetch.MEMBER, "maps", f"dicts of {way.label}"))
    return walk.guard(way, Check.TYPE, type(value), type(value).__name__, (inner,))
