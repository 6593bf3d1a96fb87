"""A Program as a tree: every node is a dataclass of ir/program.py or ir/expressions/, or a tuple of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from operator import is_
from typing import Any, TypeVar, cast

Node = TypeVar("Node")


def with_parts(node: Node, rewrite: Callable[[Any], Any]) -> Node:
    """Rewrite what a node consists of; what has no parts, such as a name, or no new ones, comes back as it is."""
    names = _fields(node)
    if not (names or isinstance(node, tuple)):
        return node
    parts = [getattr(node, name) for name in names] if names else cast(tuple[Any, ...], node)
    rewritten = tuple(map(rewrite, parts))
    if all(map(is_, parts, rewritten)):
        return node
    made: Any = type(node)(*rewritten) if names else rewritten
    return cast(Node, made)


def parts_of(node: object, kind: type[Node]) -> Iterator[Node]:
    """All parts of a kind, in the order of the fields; those within one of them are passed over."""
    if isinstance(node, kind):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from parts_of(part, kind)
    else:
        for name in _fields(node):
            yield from parts_of(getattr(node, name), kind)


_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(node: object) -> tuple[str, ...]:
    """What a node consists of, in the order in which it is made of it; nothing if it is a name or a number."""
    kind = type(node)
    if (names := _FIELDS.get(kind)) is None:
        _FIELDS[kind] = names = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return names
