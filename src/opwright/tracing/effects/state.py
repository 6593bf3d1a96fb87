"""Snapshots of what objects hold, to detect changes and undo them."""

from __future__ import annotations

import array
import collections
import functools
import gc
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch._subclasses.fake_tensor import FakeTensor

from opwright.tracing.effects.reach import GLOBALS, Attributes
from opwright.tracing.outside.purity import is_installed, is_library, module_of
from opwright.tracing.outside.unasked import ABSENT, content, in_slots, is_a, slots_of

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_SYMBOLIC = (FakeTensor, torch.SymInt, torch.SymFloat, torch.SymBool)
_KEPT_BY_PYTHON = frozenset({"__warningregistry__", "__builtins__"})  # among globals
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Kind:
    """How to save and restore the state of one kind of object.

    Attributes:
        take: Returns what an object holds.
        put: Restores that.
        same: Whether two such states are the same.
    """

    take: Callable[[Any], Any]
    put: Callable[[Any, Any], None]
    same: Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Kept:
    """What one object held."""

    value: Any
    name: str
    kind: Kind
    held: Any

    def has_changed(self) -> bool:
        """Whether it holds something else now."""
        return not self.kind.same(self.held, self.kind.take(self.value))

    def what(self) -> str:
        """Its name in messages; of globals, the one that has changed."""
        if self.name != GLOBALS:
            return self.name
        now = self.kind.take(self.value)
        names = [name for name in {**self.held, **now} if not _same(self.held.get(name, ABSENT), now.get(name, ABSENT))]
        return f"the global {names[0]}" if names else self.name

    def put_back(self) -> None:
        """Restore its state."""
        self.kind.put(self.value, self.held)


class Snapshot:
    """What some objects hold now.

    Args:
        objects: Each with its name in messages.
    """

    def __init__(self, objects: Iterable[tuple[Any, str]]) -> None:
        self._kept = list(_kept(objects))

    def add(self, objects: Iterable[tuple[Any, str]]) -> None:
        """Add what further objects hold now."""
        self._kept += _kept(objects)

    def changed(self) -> list[Kept]:
        """The objects that hold something else by now."""
        return [kept for kept in self._kept if kept.has_changed()]

    def put_back(self) -> None:
        """Restore them, and have caches of calls forget what they have learned since."""
        for kept in reversed([kept for kept in self._kept if kept.kind is _OF_CALLS or kept.has_changed()]):
            kept.put_back()


def _kept(objects: Iterable[tuple[Any, str]]) -> Iterator[Kept]:
    for value, name in objects:
        kind = _kind_of(value)
        if kind is not None:
            yield Kept(value, name, kind, kind.take(value))


def _kind_of(value: Any) -> Kind | None:
    for types_of_kind, kind in _KINDS.items():
        if is_a(value, types_of_kind):
            return kind
    return _SLOTTED if slots_of(value) else None


def _same(one: Any, other: Any) -> bool:
    """Whether two members are one object, or indistinguishable plain values."""
    return one is other or (type(one) is type(other) and _is_plain(one) and repr(one) == repr(other))


def _is_plain(value: Any) -> bool:
    return is_a(value, _PLAIN) and is_installed(module_of(type(value)))


def _same_members(before: Iterable[Any], after: Iterable[Any]) -> bool:
    before, after = list(before), list(after)
    return len(before) == len(after) and all(map(_same, before, after))


def _same_items(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> bool:
    return _same_members(before, after) and _same_members(before.values(), after.values())


def _items(value: dict[Any, Any]) -> dict[Any, Any]:
    return {key: member for key, member in dict.items(value) if key not in _KEPT_BY_PYTHON}


def _put_items(value: dict[Any, Any], held: dict[Any, Any]) -> None:
    for key in [key for key in dict.keys(value) if key not in held and key not in _KEPT_BY_PYTHON]:
        dict.__delitem__(value, key)
    for key, member in held.items():
        if not _same(dict.get(value, key, ABSENT), member):
            dict.__setitem__(value, key, member)
    if not _same_members(held, _items(value)):  # the order, which a removed key has lost
        for key in held:
            dict.__setitem__(value, key, dict.pop(value, key))


def _put_ordered(value: collections.OrderedDict[Any, Any], held: dict[Any, Any]) -> None:
    collections.OrderedDict.clear(value)
    for key, member in held.items():
        collections.OrderedDict.__setitem__(value, key, member)


def _listed(value: list[Any]) -> list[Any]:
    return list.__getitem__(value, slice(None))


def _queued(value: collections.deque[Any]) -> list[Any]:
    return list(collections.deque.__iter__(value))


def _put_list(value: list[Any], held: list[Any]) -> None:
    list.__setitem__(value, slice(None), held)


def _put_set(value: set[Any], held: frozenset[Any]) -> None:
    set.intersection_update(value, held)
    set.update(value, held)


def _put_deque(value: collections.deque[Any], held: list[Any]) -> None:
    collections.deque.clear(value)
    collections.deque.extend(value, held)


def _put_content(cell: types.CellType, held: Any) -> None:
    if held is ABSENT:
        del cell.cell_contents
    else:
        cell.cell_contents = held


def _members_of_class(kind: type) -> dict[str, Any]:
    if is_library(module_of(kind)):
        return {}
    return {name: member for name, member in vars(kind).items() if name not in _OF_EVERY_CLASS}


def _put_members(kind: type, held: Mapping[str, Any]) -> None:
    for name in _members_of_class(kind).keys() - held.keys():
        type.__delattr__(kind, name)
    for name, member in held.items():
        if not _same(vars(kind).get(name, ABSENT), member):
            type.__setattr__(kind, name, member)


def _put_slots(value: Any, held: Mapping[str, Any]) -> None:
    now = in_slots(value)
    for descriptor in slots_of(value):
        member = held[descriptor.__name__]
        if _same(now[descriptor.__name__], member):
            continue
        if member is not ABSENT:
            descriptor.__set__(value, member)
        else:
            descriptor.__delete__(value)


def _attributes_named(kept: Attributes) -> dict[str, Any]:
    held = vars(kept.holder)
    return {name: held[name] for name in kept.names if name in held}


def _put_attributes(kept: Attributes, held: dict[str, Any]) -> None:
    for name in kept.names:
        if name in held:
            setattr(kept.holder, name, held[name])
        elif name in vars(kept.holder):
            delattr(kept.holder, name)


def _knowledge(tensor: torch.Tensor) -> tuple[bool, torch.Tensor | None, frozenset[int]]:
    hooks = frozenset(number for each in _hooks_of(tensor) for number in each)
    return tensor.requires_grad, tensor.grad if tensor.is_leaf else None, hooks


def _same_knowledge(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return before[0] == after[0] and before[1] is after[1] and before[2] == after[2]


def _hooks_of(tensor: torch.Tensor) -> Iterator[dict[int, Any]]:
    yield from (getattr(tensor, name, None) or {} for name in ("_backward_hooks", "_post_accumulate_grad_hooks"))


def _put_knowledge(tensor: torch.Tensor, held: tuple[bool, torch.Tensor | None, frozenset[int]]) -> None:
    for hooks in _hooks_of(tensor):
        for number in hooks.keys() - held[2]:
            del hooks[number]
    if tensor.requires_grad is not held[0]:
        tensor.requires_grad_(held[0])
    if tensor.is_leaf and tensor.grad is not held[1]:
        tensor.grad = held[1]


def _attributes_of(argument: FakeTensor) -> tuple[frozenset[str], bool, int]:
    names = frozenset(name for name in vars(argument) if not name.startswith("_"))
    return names, argument.requires_grad, id(argument.grad) if argument.is_leaf else 0


def _leave(*_: Any) -> None:
    """Drop the fake arguments of a trace."""


@dataclass(frozen=True, slots=True)
class _Cached:
    """What a cache of calls holds.

    Attributes:
        symbols: How many fake tensors and symbols.
        keys: The calls that it knows.
    """

    symbols: int
    keys: tuple[Any, ...]


def _cached(wrapper: Any) -> _Cached:
    found = sum(is_a(member, _SYMBOLIC) for member in _remembered(wrapper, 3))
    return _Cached(found, tuple(_calls_known_to(wrapper)))


def _remembered(value: Any, depth: int) -> Iterator[Any]:
    for member in gc.get_referents(value):
        yield member
        if (depth and type(member) in (dict, list, tuple)) or type(member).__name__ == "_lru_list_elem":
            yield from _remembered(member, depth - 1)


def _calls_known_to(wrapper: Any) -> dict[Any, Any]:
    """The dict inside of a cache: the last of those it refers to that is not its attributes, after kept results."""
    held = (each for each in reversed(gc.get_referents(wrapper)) if type(each) is dict and each is not vars(wrapper))
    return next((each for each in held if len(each) == wrapper.cache_info().currsize), {})


def _forget(wrapper: Any, held: _Cached) -> None:
    known, calls = set(map(id, held.keys)), _calls_known_to(wrapper)
    for key in [key for key in calls if id(key) not in known]:
        del calls[key]


def _elements(array: numpy.ndarray[Any, Any]) -> Any:
    return array.copy() if array.nbytes <= _MOST_BYTES else ABSENT


def _same_elements(before: Any, after: Any) -> bool:
    return before is ABSENT or (
        before.dtype == after.dtype and before.shape == after.shape and before.tobytes() == after.tobytes()
    )


def _put_elements(array: numpy.ndarray[Any, Any], held: Any) -> None:
    array[...] = held


def _put_fields(record: numpy.void, held: numpy.void) -> None:
    for name in record.dtype.names or ():
        record[name] = held[name]


def _bytes_of(view: memoryview) -> bytes:
    return b"" if view.readonly or not view.c_contiguous else view.tobytes()


def _put_bytes_of(view: memoryview, held: bytes) -> None:
    view.cast("B")[:] = held


def _bytes_of_array(value: bytearray) -> bytes:
    return bytes(memoryview(value))


def _put_bytes(value: bytearray, held: bytes) -> None:
    bytearray.__setitem__(value, slice(None), held)


def _put_all(value: Any, held: Any) -> None:
    value[:] = held


_OF_EVERY_CLASS = frozenset({"__dict__", "__weakref__", "__doc__", "__abstractmethods__", "_abc_impl"})
_OF_CALLS = Kind(_cached, _forget, lambda before, after: before.symbols >= after.symbols)  # may grow otherwise
_SLOTTED = Kind(in_slots, _put_slots, _same_items)
_KINDS: Mapping[Any, Kind] = {
    Attributes: Kind(_attributes_named, _put_attributes, _same_items),
    collections.OrderedDict: Kind(_items, _put_ordered, _same_items),
    dict: Kind(_items, _put_items, _same_items),
    list: Kind(_listed, _put_list, _same_members),
    set: Kind(frozenset, _put_set, operator.eq),
    collections.deque: Kind(_queued, _put_deque, _same_members),
    bytearray: Kind(_bytes_of_array, _put_bytes, operator.eq),
    types.CellType: Kind(content, _put_content, _same),
    numpy.ndarray: Kind(_elements, _put_elements, _same_elements),
    numpy.void: Kind(numpy.void.copy, _put_fields, _same_elements),
    array.array: Kind(lambda value: value[:], _put_all, lambda before, after: before.tobytes() == after.tobytes()),
    memoryview: Kind(_bytes_of, _put_bytes_of, operator.eq),
    FakeTensor: Kind(_attributes_of, _leave, operator.eq),
    torch.Tensor: Kind(_knowledge, _put_knowledge, _same_knowledge),
    functools._lru_cache_wrapper: _OF_CALLS,
    type: Kind(_members_of_class, _put_members, _same_items),
}
