"""Operators that tests ask of torch's dispatcher have names of their own: a later one of the same name replaces it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

_ASKED_FOR = re.compile(r"torch\.ops\.opwright\.(\w+)|\b(\w+)\.overload\b|opcheck\((\w+)")


def test_they_are_unique() -> None:
    paths = Path(__file__).parents[1].rglob("*.py")
    texts = [path.read_text() for path in paths if "shipped" not in path.parts]  # which other processes import
    made = Counter(name for text in texts for name in _operators(ast.parse(text)))
    asked_for = {name for text in texts for found in _ASKED_FOR.findall(text) for name in found if name}
    asked_for |= {name for text in texts if "operator.overload" in text for name in _operators_named_in(text, made)}
    assert {name for name in asked_for if made[name] > 1} == set()


def _operators(module: ast.Module) -> list[str]:
    """Functions that become operators of their own name where their module is imported."""
    return [
        each.name
        for each in module.body
        if isinstance(each, ast.FunctionDef)
        and any(re.fullmatch(r"opwright\.operator(\((?!.*name=).*\))?", ast.unparse(d)) for d in each.decorator_list)
    ]


def _operators_named_in(text: str, made: Counter[str]) -> set[str]:
    return set(re.findall(r"\w+", text)) & set(made)
