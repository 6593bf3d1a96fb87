"""A Program as a tree: every node is a dataclass of ir/program.py or ir/expressions/, or a tuple of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Node = TypeVar("Node")


def with_parts(node: Node, rewrite: Callable[[Any], Any]) -> Node:
    """Rewrite what a node consists of; what has no parts, such as a name, comes back as it is."""
    if isinstance(node, tuple):
        return tuple(map(rewrite, node))  # type: ignore[return-value]
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{field.name: rewrite(getattr(node, field.name)) for field in fields(node)})
    return node


def parts_of(node: object, kind: type[Node]) -> Iterator[Node]:
    """All parts of a kind, in the order of the fields; those within one of them are passed over."""
    if isinstance(node, kind):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from parts_of(part, kind)
    elif is_dataclass(node):
        for field in fields(node):
            yield from parts_of(getattr(node, field.name), kind)
