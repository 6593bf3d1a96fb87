"""names: the directive `names`, every public name of a module with its docstring."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SIGNATURES = {"Operator": "(reference, *, name=None, samples=None, save='auto', …)"}  # its own has what is not public
HIDDEN = ("derivation", "function_source", "server", "transforms", "variants")  # parts of opwright read these


class Names(SphinxDirective):
    """`names:: module` describes everything in the module's `__all__` that is not a module itself."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Hand each name to autodoc."""
        module = importlib.import_module(self.arguments[0])
        lines = [line for name in module.__all__ for line in described(module.__name__, name, getattr(module, name))]
        block = nodes.container()
        self.state.nested_parse(StringList(lines, source=module.__name__), self.content_offset, block)
        return block.children


def described(module: str, name: str, value: Any) -> list[str]:
    """The directive of autodoc for one name, in reStructuredText inside of Markdown."""
    if inspect.ismodule(value):
        return []
    kind = "function"
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
    shown = ["   :members:", "   :inherited-members: object", f"   :exclude-members: {', '.join(HIDDEN)}"]
    options = shown if members_are_ours(value) else []
    return ["```{eval-rst}", f".. auto{kind}:: {module}.{name}{SIGNATURES.get(name, '')}", *options, "```", ""]


def members_are_ours(value: Any) -> bool:
    """Whether to list what a class has: not what is inherited from PyTorch, NumPy or Python."""
    return (
        inspect.isclass(value)
        and all(base.__module__.startswith(("opwright", "builtins", "typing")) for base in value.__mro__)
        and not issubclass(value, BaseException)
    )


def with_literal_formulas(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Show the formula of a ready operator as it is written: |x| is no substitution."""
    if name.startswith("opwright.library."):
        formula = next(number for number, line in enumerate(lines) if line.startswith("    "))
        lines[formula:formula] = ["::", ""]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("names", Names)
    app.connect("autodoc-process-docstring", with_literal_formulas, priority=100)  # before sections are found
    return {"parallel_read_safe": True, "parallel_write_safe": True}
