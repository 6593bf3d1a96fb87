"""Rewriting the sizes and indices in a Program, or in any part of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from opwright.ir.expressions.integer import Integer, substitute
from opwright.ir.parts import with_parts

Part = TypeVar("Part")


def replace_symbols(part: Part, replacements: Mapping[str, Integer]) -> Part:
    """Replace size symbols and axes everywhere."""
    if not replacements:
        return part
    return map_integers(part, cache(lambda expression: substitute(expression, replacements)))


def map_integers(part: Part, rewrite: Callable[[Integer], Integer]) -> Part:
    """Rewrite every integer expression."""

    def mapped(each: object) -> object:
        return rewrite(each) if isinstance(each, Integer) else with_parts(each, mapped)

    return with_parts(part, mapped)
