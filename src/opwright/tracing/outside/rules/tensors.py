"""The guard of what programs exchange in the classes of tensors, as `torch.Tensor.relu = mine` does."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from opwright.tracing.outside.guard import Check, Fetch, Guard
from opwright.tracing.outside.purity import is_installed
from opwright.tracing.outside.rules.classes import is_asked_by_python
from opwright.tracing.outside.unasked import ABSENT
from opwright.tracing.outside.walk import Walk, Way

_AS_IMPORTED: Mapping[type, Mapping[str, Any]] = {base: dict(vars(base)) for base in torch.Tensor.__mro__[:-1]}


def with_tensor_methods(walk: Walk, root: Guard, way: Way) -> Guard:
    """The guard of a function, with one that the methods and operators of tensors are as they are now.

    Args:
        walk: The walk that found the guard; exchanged methods are a part of it.
        root: The guard.
        way: The way to the function.
    """
    names = walk.names | walk.asked
    look = functools.partial(_exchanged, names)
    inside = replace(way, label="torch.Tensor")
    found = look(torch.Tensor)
    inner = [walk.describe(found, inside.to(Fetch.OF_CLASS, look, "exchanged members of torch.Tensor"))]
    inner += (_member(walk, name, inside) for name in found)
    tensor = walk.guard(inside.to(Fetch.KNOWN, torch.Tensor, inside.label), Check.IDENTITY, torch.Tensor, "", inner)
    return replace(root, guards=(*root.guards, tensor))


def _member(walk: Walk, name: str, way: Way) -> Guard:
    find = functools.partial(_found, name)
    return walk.describe(find(torch.Tensor), way.to(Fetch.OF_CLASS, find, f"'{name}' of torch.Tensor"))


def _found(name: str, cls: type) -> Any:
    """A member of a class, nothing computed; None if it is gone."""
    held = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return held.__func__ if isinstance(held, (staticmethod, classmethod)) else held


def _exchanged(names: frozenset[str], cls: type) -> tuple[str, ...]:
    """The members that are not torch's; of those that torch has none of, the ones with certain names."""
    bases = [base for base in cls.__mro__ if base in _AS_IMPORTED]
    return tuple(sorted({name for base in bases for name in _exchanged_in(base, names)}))


def _exchanged_in(base: type, names: frozenset[str]) -> Iterator[str]:
    imported, members = _AS_IMPORTED[base], vars(base)
    is_same = len(members) == len(imported) and all(map(operator.is_, members.values(), imported.values()))
    for name in _of_users(base) if is_same else members.keys() | imported.keys():
        member, was = members.get(name, ABSENT), imported.get(name, ABSENT)
        is_changed = member is not was and (was is not ABSENT or name in names or is_asked_by_python(name))
        if is_changed or _is_users(member):
            yield name


@functools.cache
def _of_users(base: type) -> tuple[str, ...]:
    """The members that were exchanged before this package was imported."""
    return tuple(name for name, member in _AS_IMPORTED[base].items() if _is_users(member))


def _is_users(member: Any) -> bool:
    return isinstance(member, types.FunctionType) and not is_installed(member.__globals__.get("__name__"))
