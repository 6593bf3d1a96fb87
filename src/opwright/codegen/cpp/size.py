"""Size expressions and conditions as C++."""

from __future__ import annotations

from opwright.ir.expressions.integer import Condition, Integer, spell


def spell_size(size: Integer) -> str:
    """An integer expression in C++; division and remainder come from launch.h."""
    return spell(size, divide="floor_divide({}, {})", remainder="floor_remainder({}, {})", maximum="greatest({}, {})")


def spell_condition(condition: Condition) -> str:
    """A relation between sizes in C++."""
    return f"{spell_size(condition.left)} {condition.relation} {spell_size(condition.right)}"
