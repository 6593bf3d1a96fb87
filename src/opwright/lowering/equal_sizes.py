"""Sizes that tracing found equal, so that equal axes are spelled alike and kernels over them can be fused."""

from __future__ import annotations

from collections.abc import Sequence

from opwright.ir.integer import Condition, Integer


def simplest_sizes(guards: Sequence[Condition]) -> dict[Integer, Integer]:
    """For every size that a guard equates with others, the one that is shortest to spell.

    From `a == (b + 2) // 3` and `b - 2*((b + 2) // 3) == (b + 2) // 3`, all three become `a`.
    """
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
