"""Copies of a module's structure, in which other tensors stand for its own, for traces.

Whatever leads to its modules and tensors leads to the copies of them: submodules, lists and dicts, bound methods,
partial functions, weak references, objects of the user. Everything else is shared.
"""

from __future__ import annotations

import collections
import functools
import types
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from opwright.tracing.outside.plain import are_same, is_plain
from opwright.tracing.outside.purity import is_installed, module_of
from opwright.tracing.outside.rules.layers import BOOKKEEPING
from opwright.tracing.outside.unasked import ABSENT, CONTAINERS, attribute, in_slots, is_a, members_of

_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)
_SEQUENCES = (list, set, collections.deque)
_PARTS = ("_parameters", "_buffers", "_modules")
_LEADING_KEYS = (nn.Module, torch.Tensor, tuple)
_MOST_OBJECTS = 50_000


class Copied:
    """A copy of a module, and of what it leads to.

    Args:
        module: What to copy.
        tensors: Its tensors.
        arguments: What stands for each; it gets the attributes that somebody gave the tensor.

    Attributes:
        module: The copy, without hooks.
    """

    def __init__(self, module: nn.Module, tensors: Sequence[torch.Tensor], arguments: Sequence[Any]) -> None:
        self._made: dict[int, Any] = {id(tensor): given for tensor, given in zip(tensors, arguments, strict=True)}
        self._leading = _leading(module, self._made.keys())
        self._changeable: list[Any] = []
        self.module: nn.Module = self._copy(module)
        for tensor, given in zip(tensors, arguments, strict=True):
            for name, value in vars(tensor).items() if given is not tensor else ():
                if name not in vars(given):
                    setattr(given, name, self._copy(value))
        self._changeable += arguments
        self._before = [_contents(value) for value in self._changeable]

    def is_unchanged(self) -> bool:
        """Whether attributes, containers, objects and tensors in the copy have what they had when it was made."""
        now = [_contents(value) for value in self._changeable]
        return all(map(_same_members, now, self._before))

    def _copy(self, value: Any) -> Any:
        if id(value) in self._made:
            return self._made[id(value)]
        kind = type(value)
        if kind in _MAPPINGS or kind in _SEQUENCES or is_a(value, nn.Module):
            return self._filled(value)
        if id(value) not in self._leading:
            return value
        made = self._rebuilt(value)
        return self._filled(value) if made is None else self._made.setdefault(id(value), made)

    def _rebuilt(self, value: Any) -> Any:
        """An immutable value that leads to copies; None if it is of another kind."""
        if is_a(value, tuple):
            members = map(self._copy, members_of(value))
            return type(value)(*members) if hasattr(type(value), "_fields") else tuple(members)
        if is_a(value, types.MethodType):
            return types.MethodType(value.__func__, self._copy(value.__self__))
        if is_a(value, functools.partial):
            keywords = {name: self._copy(given) for name, given in value.keywords.items()}
            return functools.partial(self._copy(value.func), *map(self._copy, value.args), **keywords)
        return weakref.ref(self._copy(value())) if is_a(value, weakref.ref) else None

    def _filled(self, value: Any) -> Any:
        """A copy of what can be changed: known before it is filled, because it may lead to itself."""
        kind = type(value)
        made: Any = _empty(value)
        self._made[id(value)] = made
        self._changeable.append(made)
        if is_a(value, nn.Module):
            made.__dict__.update(self._attributes(value))
        elif kind in _MAPPINGS:
            made.update((self._copy(key), self._copy(member)) for key, member in value.items())
        elif kind in (list, collections.deque):
            made.extend(map(self._copy, value))
        elif kind is set:
            made.update(map(self._copy, value))
        else:
            for name, member in _attributes_of(value):
                object.__setattr__(made, name, self._copy(member))
        return made

    def _attributes(self, module: nn.Module) -> dict[str, Any]:
        fresh, attributes = vars(nn.Module()), dict[str, Any]()
        for name, value in vars(module).items():
            if name in _PARTS or name not in BOOKKEEPING:
                attributes[name] = self._copy(value)
            elif name in fresh:
                attributes[name] = fresh[name]
        attributes["_non_persistent_buffers_set"] = set(module._non_persistent_buffers_set)
        return attributes


def _empty(value: Any) -> Any:
    """A value of the same class without members and attributes."""
    kind = type(value)
    if kind is collections.deque:
        return collections.deque(maxlen=value.maxlen)
    if kind is collections.defaultdict:
        return collections.defaultdict(value.default_factory)
    return kind() if kind in (*_MAPPINGS, *_SEQUENCES) else object.__new__(kind)


def _contents(value: Any) -> tuple[Any, ...]:
    """What can be changed in a value."""
    if is_a(value, nn.Module):
        return tuple(member for item in attribute(value, "__dict__").items() for member in item)
    if is_a(value, torch.Tensor):
        held = (member for item in vars(value).items() if not item[0].startswith("_") for member in item)
        return (len(value._backward_hooks or ()), *held)
    if type(value) in _MAPPINGS:
        return tuple(member for item in value.items() for member in item)
    return tuple(value) if type(value) in _SEQUENCES else tuple(m for item in _attributes_of(value) for m in item)


def _same_members(now: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    return len(now) == len(before) and all(map(_same, now, before))


def _same(now: Any, before: Any) -> bool:
    return now is before or (is_plain(now) and is_plain(before) and are_same(now, before))


def _leading(root: Any, tensors: Iterable[int]) -> set[int]:
    """The objects, by identity, from which modules or some tensors are reached."""
    wanted, parents = set(tensors), dict[int, list[int]]()
    pending, seen = [root], {id(root): root}  # held, so that no identity is used twice
    found = set[int]()
    while pending and len(seen) < _MOST_OBJECTS:
        value = pending.pop()
        for member in _members(value):
            parents.setdefault(id(member), []).append(id(value))
            if id(member) in wanted or is_a(member, nn.Module):
                found.add(id(member))
            if id(member) not in seen:
                seen[id(member)] = member
                pending.append(member)
    leading, climbing = set[int](), list(found)
    while climbing:
        for parent in parents.get(climbing.pop(), ()):
            if parent not in leading:
                leading.add(parent)
                climbing.append(parent)
    return leading


def _members(value: Any) -> Iterable[Any]:
    """The values that an object leads to."""
    kind = type(value)
    if issubclass(kind, nn.Module):
        held = attribute(value, "__dict__")
        named = (member for name, member in held.items() if name not in BOOKKEEPING)
        return (*named, *(member for part in _PARTS for member in held[part].values()))
    if issubclass(kind, dict):
        keys = (key for key in dict.keys(value) if is_a(key, _LEADING_KEYS))
        return (*keys, *dict.values(value))
    if issubclass(kind, CONTAINERS):
        return tuple(members_of(value))
    if issubclass(kind, types.MethodType):
        return (value.__self__,)
    if issubclass(kind, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if issubclass(kind, weakref.ref):
        return (value(),)
    if issubclass(kind, torch.Tensor):
        return tuple(vars(value).values())
    if issubclass(kind, type) or not _may_be_copied(kind):
        return ()
    return tuple(member for _, member in _attributes_of(value))


def _may_be_copied(kind: type) -> bool:
    """Whether objects of a class are made of attributes alone, and may be forgotten without a trace."""
    is_an_object: bool = getattr(kind, "__new__", None) is object.__new__
    return is_an_object and not is_installed(module_of(kind)) and not hasattr(kind, "__del__")


def _attributes_of(value: Any) -> Iterator[tuple[str, Any]]:
    held = attribute(value, "__dict__")
    yield from held.items() if type(held) is dict else ()
    slotted = in_slots(value, of_libraries=True)
    yield from ((name, member) for name, member in slotted.items() if member is not ABSENT)
