"""The guard of what counts as derived from an abstract class: `Sequence.register(Mine)` changes it."""

from __future__ import annotations

import abc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from opwright.tracing.outside.guard import Fetch, Guard
from opwright.tracing.outside.walk import Walk, Way

_dumped: Callable[[type], tuple[Any, ...]] = abc._get_dump  # type: ignore[attr-defined]  # what is registered
_noted: weakref.WeakKeyDictionary[abc.ABCMeta, tuple[object, tuple[str, ...]]] = weakref.WeakKeyDictionary()


def registered_with(walk: Walk, value: type, way: Way) -> Iterator[Guard]:
    """The classes that count as derived from an abstract one."""
    if isinstance(value, abc.ABCMeta) and (kind := (id(value), "registered")) not in walk.known:
        walk.known.add(kind)
        yield walk.describe(_registered(value), way.to(Fetch.VIA, _registered, f"what counts as {way.label}"))


def _registered(value: abc.ABCMeta) -> tuple[str, ...]:
    """The classes that are registered with an abstract one, and with those derived from it."""
    now = abc.get_cache_token()  # another one after every registration
    if (noted := _noted.get(value)) is None or noted[0] != now:
        noted = _noted[value] = now, tuple(sorted({spelling for each in _abstract(value) for spelling in _held(each)}))
    return noted[1]


def _abstract(value: abc.ABCMeta) -> Iterator[abc.ABCMeta]:
    """A class, and those derived from it that are abstract."""
    yield value
    for derived in _derived(value):
        if isinstance(derived, abc.ABCMeta):
            yield from _abstract(derived)


def _derived(value: abc.ABCMeta) -> list[Any]:
    return type.__subclasses__(value)  # also where a class hides it


def _held(value: abc.ABCMeta) -> Iterator[str]:
    found = (reference() for reference in _dumped(value)[0])
    return (f"{each.__module__}.{each.__qualname__}" for each in found if each is not None)
