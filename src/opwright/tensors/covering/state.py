"""State: what an object holds beside its values, which no function may change that is not in place."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from opwright.tensors.covering.subject import Subject


@dataclass(frozen=True, slots=True)
class State:
    """Copies of what an object holds.

    Attributes:
        attributes: Those that can be copied, by name.
        context: What `__tensor_flatten__` tells compilers beside the names of tensors; None if the type has none.
    """

    attributes: dict[str, Any]
    context: Any


def state_of(sample: Any) -> State:
    """The state of an object; a change of it does not change the copies."""
    attributes = {}
    for name, value in getattr(sample, "__dict__", {}).items():
        if isinstance(value, _HELD):
            attributes[name] = _copied(value)
    return State(attributes, _copied(_context(sample)))


def restored(subject: Subject, before: State) -> str:
    """How the sample's metadata, or what compilers are told of it, differ from a state; it is put back.

    Caches, counters and the like may change.
    """
    sample, said = subject.sample, ""
    for name in subject.metadata:
        if name in before.attributes and not _are_same(now := getattr(sample, name), before.attributes[name]):
            said = said or f"{name} is {now!r}, not {before.attributes[name]!r}"
    now = _context(sample)
    if not said and not _are_same(now, before.context):
        said = _in_words(now, before.context)
    if not said:
        return ""
    for name, value in before.attributes.items():
        if not _are_same(getattr(sample, name, None), value):
            setattr(sample, name, value)
    return f"it changes its argument: {said}"


def _in_words(now: Any, before: Any) -> str:
    """What differs; of dicts, the first key."""
    if isinstance(now, dict) and isinstance(before, dict):
        name = next((name for name in before if name in now and not _are_same(now[name], before[name])), None)
        if name is not None:
            return f"{name} is {now[name]!r}, not {before[name]!r}"
    return f"compilers are told {now!r}, not {before!r}"[:200]


_HELD = (bool, int, float, str, tuple, list, dict, set)


def _context(sample: Any) -> Any:
    flatten = getattr(sample, "__tensor_flatten__", None)
    try:
        return None if flatten is None else flatten()[1]
    except Exception:  # the type's own code
        return None


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # what it holds has no copies
        return value


def _are_same(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # there is no telling, as of tensors
        return True
