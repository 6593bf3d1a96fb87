"""A Program as a tree: every node is a dataclass of ir/program.py or ir/expressions/, or a tuple of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from operator import attrgetter, is_
from typing import Any, TypeVar, cast

from opwright.ir.expressions.dtype import DType

Node = TypeVar("Node")


def with_parts(node: Node, rewrite: Callable[[Any], Any]) -> Node:
    """Rewrite the nodes that a node consists of; without any, or without new ones, it comes back as it is."""
    parts = node if isinstance(node, tuple) else _taker(type(node))(node)
    rewritten = tuple([part if type(part) in _LEAVES else rewrite(part) for part in parts])
    if all(map(is_, parts, rewritten)):
        return node
    made: Any = rewritten if isinstance(node, tuple) else type(node)(*rewritten)
    return cast(Node, made)


def parts_of(node: object, kind: type[Node]) -> Iterator[Node]:
    """All parts of a kind, in the order of the fields; those within one of them are passed over."""
    if isinstance(node, kind):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from parts_of(part, kind)
    else:
        for name in field_names(type(node)):
            yield from parts_of(getattr(node, name), kind)


_LEAVES = frozenset((str, int, float, complex, bool, type(None), DType))
_NAMES: dict[type, tuple[str, ...]] = {}
_TAKERS: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


def field_names(kind: type) -> tuple[str, ...]:
    """What nodes of a kind consist of, in the order in which they are made of it; nothing for names and numbers."""
    if kind not in _NAMES:
        _NAMES[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return _NAMES[kind]


def _taker(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the parts of nodes of a kind."""
    if kind not in _TAKERS:
        names = field_names(kind)
        one_by_one = lambda node: tuple(getattr(node, name) for name in names)  # noqa: E731
        _TAKERS[kind] = attrgetter(*names) if len(names) > 1 else one_by_one
    return _TAKERS[kind]
