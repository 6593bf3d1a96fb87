"""Look at objects without running code of theirs, such as `__getattribute__` or `__iter__` of a subclass.

That code may change something, and would count as code that the function runs.
"""

from __future__ import annotations

import collections
import types
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opwright.tracing.outside.purity import is_installed, module_of


class _Absent:
    """A marker for a missing value."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def is_a(value: Any, kinds: Any) -> bool:
    """Whether the class of an object, which may say another with `__class__`, is among these, or is a subclass."""
    return issubclass(type(value), kinds)


def members_of(value: Any) -> Iterable[Any]:
    """The members of a builtin container, and the keys and values of a dict, also of subclasses; of others none."""
    kind = type(value)
    if kind not in _MEMBERS and not issubclass(kind, CONTAINERS):
        return ()
    read = _MEMBERS.get(kind) or next(read for base, read in _MEMBERS.items() if issubclass(kind, base))
    return read(value)


def attribute(value: Any, name: str) -> Any:
    """What an object has as an attribute by Python's own rules; ABSENT if it has none."""
    find = type.__getattribute__ if issubclass(type(value), type) else object.__getattribute__
    try:
        return find(value, name)
    except AttributeError:
        return ABSENT


def behind(value: Any) -> Any:
    """What a weak proxy stands for; ABSENT if that is gone; another value as it is."""
    if type(value) not in weakref.ProxyTypes:
        return value
    try:
        return value.__repr__.__self__  # a proxy hands on what it is asked for
    except ReferenceError:
        return ABSENT


def content(cell: types.CellType) -> Any:
    """The value of a closure cell; ABSENT if it is not assigned yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def in_slots(value: Any, *, of_libraries: bool = False) -> dict[str, Any]:
    """The attributes of an object that are not in its `__dict__`; ABSENT where they are not assigned.

    Args:
        value: The object.
        of_libraries: Also those of classes of Python, torch and NumPy.
    """
    held = {}
    for descriptor in slots_of(value, of_libraries=of_libraries):
        try:
            held[descriptor.__name__] = descriptor.__get__(value)
        except AttributeError:
            held[descriptor.__name__] = ABSENT
    return held


def slots_of(value: Any, *, of_libraries: bool = False) -> list[types.MemberDescriptorType]:
    """Where those lie."""
    kinds = [kind for kind in type(value).__mro__ if of_libraries or not is_installed(module_of(kind))]
    return [attribute(kind, "__dict__")[name] for kind in kinds for name in slots_of_class(kind)]


def slots_of_class(cls: type) -> list[str]:
    """The attributes for which a class itself has slots."""
    held = vars(cls) if "__slots__" in vars(cls) else {}
    return [name for name, member in held.items() if isinstance(member, types.MemberDescriptorType)]


def names_of_class(cls: type) -> set[str]:
    """The attributes that instances find in a class and its bases."""
    return {name for base in cls.__mro__ for name in attribute(base, "__dict__")}


def keys_of(value: Any) -> tuple[Any, ...]:
    """The keys of a dict in their order, also of a subclass; what another object gives one after the other."""
    if is_a(value, collections.OrderedDict):
        return tuple(collections.OrderedDict.__iter__(value))
    return tuple(dict.__iter__(value) if is_a(value, dict) else value)


def item_of(value: Any, key: Any) -> Any:
    """A value in a dict, also of a subclass, or in another mapping; ABSENT if there is none."""
    return dict.get(value, key, ABSENT) if is_a(value, dict) else value.get(key, ABSENT)


def member_of(value: Any, position: int) -> Any:
    """A member of a list or tuple, also of a subclass, or of another sequence.

    Raises:
        IndexError: If there is none.
    """
    kind = _sequence_of(value)
    return kind.__getitem__(value, position) if kind else value[position]


def length_of(value: Any) -> int:
    """The length of a list or tuple, also of a subclass, or of another container."""
    kind = _sequence_of(value)
    return kind.__len__(value) if kind else len(value)


def _sequence_of(value: Any) -> Any:
    return next((kind for kind in (list, tuple) if is_a(value, kind)), None)


_MEMBERS: Mapping[type, Callable[[Any], Iterable[Any]]] = {
    dict: lambda value: (member for pair in dict.items(value) for member in pair),
    **{kind: kind.__iter__ for kind in (list, tuple, set, frozenset, collections.deque)},
}
CONTAINERS = tuple(_MEMBERS)
