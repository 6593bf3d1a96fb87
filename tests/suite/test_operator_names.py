"""Operators that tests share have names of their own: at torch's dispatcher, a later one of the same name replaces it.

An operator is shared if it is made when its module is imported, or asked for by its name. `taken_names.py` looks at the
operators themselves while tests run; this reads the sources of all tests, whatever runs.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_ASKED_FOR = re.compile(r"torch\.ops\.opwright\.(\w+)|\b(\w+)\.overload\b|opcheck\((\w+)")
_MAKERS = ("opwright.operator", "opwright.Operator", "Operator")


@dataclass(frozen=True, slots=True)
class Made:
    """A place where an operator is made, and whether that is done when the module is imported."""

    name: str
    place: str
    at_import: bool


def test_they_are_unique() -> None:
    paths = Path(__file__).parents[1].rglob("*.py")
    texts = {path: path.read_text() for path in paths if "shipped" not in path.parts}  # which other processes import
    made = [each for path, text in texts.items() for each in _made(ast.parse(text), path.name)]
    names = Counter(each.name for each in made)
    asked_for = {name for text in texts.values() for found in _ASKED_FOR.findall(text) for name in found if name}
    asked_for |= {name for text in texts.values() if "operator.overload" in text for name in _words(text) & {*names}}
    assert _clashes(made, asked_for) == {}


@pytest.mark.parametrize(
    ("text", "clashing"),
    [
        ("@opwright.operator\ndef f(x): ...\ndef test():\n    def f(x): ...\n    Operator(f)\n", True),
        ("def f(x): ...\nO = Operator(f, save='memory')\ndef test():\n    Operator(g, name='opwright::f')\n", True),
        ("@opwright.operator(save='all')\ndef f(x): ...\nO = opwright.Operator(x, name='f')\n", True),
        ("CASES = {'a': Operator(f)}\ndef f(x): ...\ndef test():\n    opwright.operator(f)\n", True),
        ("def f(x): ...\ndef test():\n    Operator(f)\ndef test_more():\n    Operator(f)\n", False),
        ("@opwright.operator(name='other::f')\ndef f(x): ...\ndef test():\n    Operator(f)\n", False),
        ("def f(x): ...\nO = Operator(f)\ndef test(f):\n    Operator(f, name='g')\n", False),
    ],
)
def test_a_clash_is_found(text: str, clashing: bool) -> None:
    assert bool(_clashes(list(_made(ast.parse(text), "here")), set())) is clashing


def _clashes(made: list[Made], asked_for: set[str]) -> dict[str, list[str]]:
    """Names that are shared and given twice, and the places."""
    places = defaultdict(list)
    for each in made:
        places[each.name].append(each.place)
    shared = {each.name for each in made if each.at_import} | asked_for
    return {name: found for name, found in places.items() if name in shared and len(found) > 1}


def _made(module: ast.Module, file: str) -> Iterator[Made]:
    """Operators of functions that the module spells, and of names that are given."""
    functions = {each.name for each in ast.walk(module) if isinstance(each, ast.FunctionDef)}
    for node, at_import in _nodes(module, at_import=True):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator) in _MAKERS:
                    name = _given_name(decorator) if isinstance(decorator, ast.Call) else None
                    yield Made(_short(name or node.name), f"{file}:{node.lineno}", at_import)
        elif isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in _MAKERS:
            name = _given_name(node) or ast.unparse(node.args[0])
            if _given_name(node) or name in functions:
                yield Made(_short(name), f"{file}:{node.lineno}", at_import)


def _nodes(node: ast.AST, at_import: bool) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes; those in the body of a function are not run at import."""
    for child in ast.iter_child_nodes(node):
        inside = isinstance(node, ast.FunctionDef | ast.Lambda) and child not in getattr(node, "decorator_list", ())
        yield child, at_import and not inside
        yield from _nodes(child, at_import and not inside)


def _given_name(call: ast.Call) -> str | None:
    """The name that a call gives; an expression stands for itself, with braces, and is taken for unique."""
    given = [each.value for each in call.keywords if each.arg == "name"]
    if given and not isinstance(given[0], ast.Constant):
        return f"{{{ast.unparse(given[0])}, line {call.lineno}}}"
    return str(given[0].value) if given and given[0].value else None


def _short(name: str) -> str:
    return name.removeprefix("opwright::")


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))
