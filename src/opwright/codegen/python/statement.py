"""Assignments of emitted Python, and what they read."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """An assignment."""

    names: tuple[str, ...]
    value: str

    @property
    def reads(self) -> frozenset[str]:
        """The names in its value."""
        return frozenset(node.id for node in ast.walk(ast.parse(self.value)) if isinstance(node, ast.Name))


def needed_for(statements: Sequence[Statement], names: Iterable[str]) -> list[Statement]:
    """The statements that some names depend on, in order."""
    needed = set(names)
    kept: list[Statement] = []
    for statement in reversed(statements):
        if needed.intersection(statement.names):
            kept.append(statement)
            needed |= statement.reads
    return kept[::-1]
