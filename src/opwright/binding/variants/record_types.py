"""Whether a value read from a record has the declared types, to any depth."""

from __future__ import annotations

import functools
import types
import typing
from dataclasses import is_dataclass
from typing import Any


def as_tuples(value: Any) -> Any:
    """What was read from JSON, with tuples for its lists at any depth."""
    if isinstance(value, dict):
        return {name: as_tuples(member) for name, member in value.items()}
    return tuple(map(as_tuples, value)) if isinstance(value, list | tuple) else value


def has_declared_types(value: Any, declared: Any) -> bool:
    """Whether a value has an annotated type: a class, a union, a tuple, a dataclass with its fields."""
    if declared is Any:
        return True
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        return any(has_declared_types(value, argument) for argument in arguments)
    if origin is tuple:
        return type(value) is tuple and _are_members(value, arguments)
    if is_dataclass(declared):
        assert isinstance(declared, type)
        fields = _fields(declared).items()
        return isinstance(value, declared) and all(
            has_declared_types(getattr(value, name), kind) for name, kind in fields
        )
    if declared is float:
        return type(value) in (float, int)  # JSON distinguishes fewer types than Python
    if origin is not None:
        return isinstance(value, origin)
    return isinstance(value, declared) and (declared is not int or type(value) is int)


def _are_members(value: tuple[Any, ...], declared: tuple[Any, ...]) -> bool:
    if len(declared) == 2 and declared[1] is Ellipsis:
        return all(has_declared_types(member, declared[0]) for member in value)
    return len(value) == len(declared) and all(map(has_declared_types, value, declared))


@functools.cache
def _fields(declared: type) -> dict[str, Any]:
    return typing.get_type_hints(declared)
