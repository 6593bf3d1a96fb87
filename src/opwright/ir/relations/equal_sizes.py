"""Sizes that tracing found equal, so that equal axes are spelled alike and kernels over them can be fused."""

from __future__ import annotations

from collections.abc import Sequence

from opwright.ir.expressions.integer import Condition, Integer, replace_atoms
from opwright.ir.relations.relations import relations
from opwright.ir.relations.simplified import simplified
from opwright.ir.relations.spans import bounds_in, span_of


class EqualSizes:
    """Spells a size by the shortest expression that the guards make equal to it."""

    def __init__(self, guards: Sequence[Condition]) -> None:
        self._shortest = _shortest_spellings(guards)
        self._bounds = bounds_in(filter(None, map(span_of, (*guards, *relations(guards).conditions))))

    def spell(self, size: Integer) -> Integer:
        """From `a == (b + 2) // 3`: `(b + 2) // 3` becomes `a`, and `b - 2*((b + 2) // 3)` becomes `b - 2*a`.

        From `b >= 2`: `max(1, b)` becomes `b`.
        """
        shorter = self._shortest.get(size) or replace_atoms(size, self._shortest)
        return simplified(self._shortest.get(shorter, shorter), self._bounds)


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
