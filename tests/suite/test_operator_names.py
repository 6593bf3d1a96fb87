"""Operators that tests ask of torch's dispatcher have names of their own: a later one of the same name replaces it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

_ASKED_FOR = re.compile(r"torch\.ops\.opwright\.(\w+)|\b(\w+)\.overload\b|opcheck\((\w+)")

_MAKES = re.compile(r"opwright\.operator(\((?!.*name=).*\))?")
_MADE = re.compile(r"^opwright\.operator\((\w+)(?!.*name=)")


def test_they_are_unique() -> None:
    paths = Path(__file__).parents[1].rglob("*.py")
    texts = [path.read_text() for path in paths if "shipped" not in path.parts]  # which other processes import
    made = Counter(name for text in texts for name in _operators(ast.parse(text)))
    asked_for = {name for text in texts for found in _ASKED_FOR.findall(text) for name in found if name}
    asked_for |= {name for text in texts if "operator.overload" in text for name in _operators_named_in(text, made)}
    assert {name for name in asked_for if made[name] > 1} == set()


def _operators(module: ast.Module) -> set[str]:
    """Functions that become operators of their own name, at import or in a test."""
    functions = [each for each in ast.walk(module) if isinstance(each, ast.FunctionDef)]
    decorated = {each.name for each in functions if any(map(_MAKES.fullmatch, map(ast.unparse, each.decorator_list)))}
    called = {
        found for call in ast.walk(module) if isinstance(call, ast.Call) for found in _MADE.findall(ast.unparse(call))
    }
    return decorated | (called & {each.name for each in functions})


def _operators_named_in(text: str, made: Counter[str]) -> set[str]:
    return set(re.findall(r"\w+", text)) & set(made)
