"""Sizes that tracing found equal, so that equal axes are spelled alike and kernels over them can be fused."""

from __future__ import annotations

from collections.abc import Sequence

from opwright.ir.expressions.integer import Condition, Integer, replace_atoms


class EqualSizes:
    """Spells a size by the shortest expression that the guards equate with it."""

    def __init__(self, guards: Sequence[Condition]) -> None:
        self._shortest = _shortest_spellings(guards)

    def spell(self, size: Integer) -> Integer:
        """From `a == (b + 2) // 3`: `(b + 2) // 3` becomes `a`, and `b - 2*((b + 2) // 3)` becomes `b - 2*a`."""
        if size in self._shortest:
            return self._shortest[size]
        shorter = replace_atoms(size, self._shortest)
        return self._shortest.get(shorter, shorter)


def _shortest_spellings(guards: Sequence[Condition]) -> dict[Integer, Integer]:
    classes: dict[Integer, set[Integer]] = {}
    for guard in guards:
        if guard.relation != "==":
            continue
        merged = classes.get(guard.left, {guard.left}) | classes.get(guard.right, {guard.right})
        classes.update((member, merged) for member in merged)
    return {member: min(members, key=_length) for member, members in classes.items()}


def _length(expression: Integer) -> tuple[int, str]:
    text = str(expression)
    return len(text), text
