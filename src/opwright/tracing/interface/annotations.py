"""Parameter annotations, and their types in a torch schema.

For other annotations, or none, each call shows what a parameter is.

annotation = Tensor | float | int | bool | str | dtype | None
           | Literal[constants of one type]
           | union of annotations | list[annotation] | tuple[annotation, …] | tuple[annotation, ...]
           | Sequence[annotation] | dict[str, annotation] | Mapping[str, annotation] | NamedTuple of annotations
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import torch

from opwright.introspection import annotations_of

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


def read_annotations(reference: Callable[..., Any]) -> Mapping[str, Any]:
    """The annotations of a function that can be read, evaluated, by parameter; "return" is that of the result.

    A name that is imported only for type checkers cannot be read.
    """
    try:
        return {name: _bare(hint) for name, hint in typing.get_type_hints(reference).items()}
    except Exception:  # any exception: an annotation is user code
        return dict(_read_one_by_one(reference))


def _read_one_by_one(reference: Callable[..., Any]) -> collections.abc.Iterator[tuple[str, Any]]:
    scope = getattr(inspect.unwrap(reference), "__globals__", {})
    for name, annotation in annotations_of(reference).items():
        alone = type("Alone", (), {"__annotations__": {name: annotation}})
        try:
            yield name, _bare(typing.get_type_hints(alone, scope)[name])
        except Exception:
            continue


def _bare(annotation: Any) -> Any:
    """An annotation reduced to its type, without additions such as the shape of a tensor."""
    while isinstance(annotation, typing.NewType):
        annotation = annotation.__supertype__
    if isinstance(annotation, type) and issubclass(annotation, torch.Tensor):
        return torch.Tensor
    if typing.get_origin(annotation) is typing.Literal:
        types_of = {type(value) for value in typing.get_args(annotation)}
        return types_of.pop() if len(types_of) == 1 else annotation
    return annotation


def is_supported(annotation: Any) -> bool:
    """Whether an annotation says what a parameter holds."""
    if _is_scalar(annotation) or annotation in (None, type(None)):
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


def _is_scalar(annotation: Any) -> bool:
    return isinstance(annotation, type) and annotation in SCALARS


def schema_type(annotation: Any) -> str | None:
    """The type in a torch schema; None if there is none, such as for a dict."""
    if _is_scalar(annotation):
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
