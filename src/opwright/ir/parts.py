"""A Program as a tree: every node is a dataclass of ir/program.py or ir/expressions/, or a tuple of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from operator import is_
from typing import Any, TypeVar

Node = TypeVar("Node")


def with_parts(node: Node, rewrite: Callable[[Any], Any]) -> Node:
    """Rewrite what a node consists of; what has no parts, such as a name, or no new ones, comes back as it is."""
    kind: Any = type(node)
    parts: Any
    if kind is tuple:
        parts = node
    elif names := _fields(kind):
        parts = [getattr(node, name) for name in names]
    else:
        return node
    rewritten: Any = tuple(map(rewrite, parts))
    if all(map(is_, parts, rewritten)):
        return node
    return rewritten if kind is tuple else kind(*rewritten)


def parts_of(node: object, kind: type[Node]) -> Iterator[Node]:
    """All parts of a kind, in the order of the fields; those within one of them are passed over."""
    if isinstance(node, kind):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from parts_of(part, kind)
    else:
        for name in _fields(node.__class__):
            yield from parts_of(getattr(node, name), kind)


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    """What a node of a kind consists of, in the order in which it is made of it."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
