"""refusals: the directive `refusals`, every class of error with what it means and what to do, read off the sources."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from opwright import errors

PACKAGE = Path(inspect.getfile(errors)).parent


class Refusals(SphinxDirective):
    """One section for each class: its sentence, and the hints with which it is raised."""

    def run(self) -> list[nodes.Node]:
        """Make the sections."""
        told = hints()
        text = "\n".join(line for kind in classes() for line in section(kind, told.get(kind.__name__, [])))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def classes() -> list[type[BaseException]]:
    """The classes of errors and warnings, by name."""
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, BaseException)]
    return sorted(found, key=lambda kind: kind.__name__)


def section(kind: type[BaseException], remedies: list[str]) -> list[str]:
    """The lines of one section in Markdown."""
    bases = [base.__name__ for base in kind.__bases__ if base not in (errors.OpwrightError, Exception)]
    of = f" It is a kind of {' and of '.join(f'`{base}`' for base in bases)}." if bases else ""
    meaning = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    lines = [f"## {kind.__name__}", "", meaning + of, ""]
    return [*lines, "What to do:", "", *(f"- {remedy}" for remedy in remedies), ""] if remedies else lines


def hints() -> dict[str, list[str]]:
    """The hints of each class, in the order of the alphabet; what varies in one is "…"."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for name, hint in hints_in(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(name, set()).add(hint)
    return {name: sorted(each, key=str.lower) for name, each in found.items()}


def hints_in(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Calls with a `hint=` that is written out: what is called, and the hint."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            hint = next((keyword.value for keyword in node.keywords if keyword.arg == "hint"), None)
            if text := spelled(hint):
                yield name, text


def spelled(node: ast.expr | None) -> str:
    """A text that is written out, with "…" for what is put into it; empty if it is not one."""
    match node:
        case ast.Constant(value=str(text)):
            return text.replace("\n", " ")
        case ast.JoinedStr(values=values):
            text = "".join(part.value if isinstance(part, ast.Constant) else "…" for part in values)
            return text.replace("\n", " ") if len(text.strip("… ")) > 12 else ""
        case _:
            return ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("refusals", Refusals)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
