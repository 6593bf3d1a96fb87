"""What an annotation allows a parameter to hold, and what a torch schema calls it.

annotation = Tensor | float | int | bool | str | dtype | None
           | union of annotations | list[annotation] | tuple[annotation, …] | tuple[annotation, ...]
           | Sequence[annotation] | dict[str, annotation] | Mapping[str, annotation] | NamedTuple of annotations
"""

from __future__ import annotations

import collections.abc
import types
import typing
from typing import Any

import torch

SCALARS: dict[Any, str] = {
    torch.Tensor: "Tensor",
    float: "float",
    int: "int",
    bool: "bool",
    str: "str",
    torch.dtype: "ScalarType",
}
_LISTS = (list, collections.abc.Sequence)
_DICTS = (dict, collections.abc.Mapping)
_LISTED = ("Tensor", "Tensor?", "int", "float", "bool")


def is_supported(annotation: Any) -> bool:
    """Whether an operator takes what is annotated so."""
    if annotation in SCALARS or annotation in (None, type(None)):
        return True
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if is_named_tuple(annotation):
        hints = typing.get_type_hints(annotation)
        return all(name in hints and is_supported(hints[name]) for name in annotation._fields)
    if origin in (typing.Union, types.UnionType) or origin in _LISTS:
        return all(is_supported(member) for member in members)
    if origin is tuple:
        return all(is_supported(member) for member in members if member is not ...)
    return origin in _DICTS and members[0] in (str, int) and is_supported(members[1])


def schema_type(annotation: Any) -> str | None:
    """The type in a torch schema; None if there is none, such as for a dict."""
    if annotation in SCALARS:
        return SCALARS[annotation]
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        rest = [member for member in members if member is not type(None)]
        inner = schema_type(rest[0]) if len(rest) == 1 and len(members) == 2 else None
        return inner and f"{inner}?"
    if origin in _LISTS or (origin is tuple and len(members) == 2 and members[1] is ...):
        inner = schema_type(members[0])
        return f"{inner}[]" if inner in _LISTED else None
    return None


def is_named_tuple(annotation: Any) -> bool:
    """Whether it is a class of named tuples."""
    return isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields")
