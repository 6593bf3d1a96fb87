"""The reference as a module of its own: its source, and that of everything of the user's that it uses.

F.elu(g)     becomes  import torch.nn.functional as F
SLOPE        becomes  SLOPE = 0.01
gate(x)      becomes  the function `gate`, with what that uses in turn; an operator becomes its reference
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import math
import symtable
import sysconfig
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from opwright.errors import NotEjectable, Place
from opwright.operators.base import BaseOperator
from opwright.tracing.interface.signature import place_of
from opwright.tracing.outside.purity import is_installed

_CONSTANTS = (int, float, complex, str, bytes, bool, type(None), type(...), torch.dtype, torch.device)
# Where torch's built-in functions are found: they do not say it themselves.
_HOMES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft", "math")


@dataclass(slots=True)
class Carried:
    """What a module is put together from.

    Attributes:
        imports: Lines such as "import math".
        packages: Those that are imported, beside torch and Python's own.
        constants: Lines such as "SLOPE = 0.01", by name.
        functions: Sources by name, each after those that it uses.
        objects: What each name stands for.
    """

    imports: set[str] = field(default_factory=lambda: {"import torch"})
    packages: set[str] = field(default_factory=set)
    constants: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)

    def text(self, docstring: str) -> str:
        """The module."""
        imports = sorted(self.imports, key=lambda line: (line.startswith("from"), line))
        head = [f'"""{docstring}"""', "from __future__ import annotations", "\n".join(imports)]
        head += ["\n".join(self.constants.values())] if self.constants else []
        return "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(self.functions.values()) + "\n"


def carry(reference: Callable[..., Any]) -> Carried:
    """Collect the source of a function and of everything that it uses.

    Raises:
        NotEjectable: If a source cannot be read, or there is something in it that no source stands for.
    """
    carried = Carried()
    function = inspect.unwrap(reference)
    _carry_function(function.__name__, function, carried)
    return carried


def _carry_function(name: str, function: Any, carried: Carried) -> None:
    node, text = _definition(function)
    carried.objects[name] = function
    if node.name != name:
        _carry(node.name, function, carried, place_of(function))
        text = f"{name} = {node.name}"
    else:
        for used, value in _used(function, text):
            _carry(used, value, carried, place_of(function))
    carried.functions[name] = text


def _definition(function: Any) -> tuple[ast.FunctionDef, str]:
    """A function's node, and its text from `def` on."""
    place = place_of(function)
    try:
        text = textwrap.dedent(inspect.getsource(function))
        (node,) = ast.parse(text).body
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        fact = f"the source of {function.__name__} cannot be read"
        raise NotEjectable(fact, place=place, hint="define it by `def`, in a file") from error
    if not isinstance(node, ast.FunctionDef):
        raise NotEjectable(f"{function.__name__} is not defined by `def`", place=place, hint="define it by `def`")
    for decorator in node.decorator_list:
        if not _is_ours(decorator, function):
            written = ast.unparse(decorator)
            raise NotEjectable(f"{node.name} has the decorator {written}, which would be lost", place=place)
    return node, "\n".join(text.splitlines()[node.lineno - 1 :]).rstrip()


def _is_ours(decorator: ast.expr, function: Any) -> bool:
    """Whether a decorator is one of opwright's, which the project does without."""
    root: ast.expr = decorator
    while isinstance(root, ast.Call | ast.Attribute):
        root = root.func if isinstance(root, ast.Call) else root.value
    value = _scope(function).get(root.id) if isinstance(root, ast.Name) else None
    said = getattr(value, "__module__", None) or getattr(value, "__name__", None)
    return isinstance(said, str) and said.partition(".")[0] == "opwright"


def _used(function: Any, text: str) -> Iterator[tuple[str, Any]]:
    """The names that a function takes from around it, and what they stand for."""
    scope = _scope(function)
    for name in sorted(_free_names(symtable.symtable(text, function.__name__, "exec"))):
        if name in scope:
            yield name, scope[name]
        elif not hasattr(builtins, name):
            raise NotEjectable(f"{function.__name__} uses {name}, which is not defined", place=place_of(function))


def _free_names(table: symtable.SymbolTable) -> set[str]:
    """Names that a text reads and does not define: of annotations and defaults, and the global ones of functions."""
    at_top = table.get_type() == "module"
    own = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if (symbol.is_referenced() and not symbol.is_assigned() if at_top else symbol.is_global())
    }
    defined = {symbol.get_name() for symbol in table.get_symbols() if at_top and symbol.is_assigned()}
    return own.union(*map(_free_names, table.get_children())) - defined


def _scope(function: Any) -> dict[str, Any]:
    return {**function.__globals__, **inspect.getclosurevars(function).nonlocals}


def _carry(name: str, value: Any, carried: Carried, place: Place) -> None:
    """Add what a name stands for."""
    if name in carried.objects:
        if carried.objects[name] is not value and carried.objects[name] != value:
            raise NotEjectable(f"{name} means different things in the functions that are used", place=place)
        return
    value = inspect.unwrap(value.reference) if isinstance(value, BaseOperator) else value
    carried.objects[name] = value
    if isinstance(value, types.ModuleType) and _is_package(value.__name__):
        _import(f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else ""), value.__name__, carried)
    elif isinstance(value, types.FunctionType) and not _is_package(value.__module__):
        _carry_function(name, value, carried)
    elif (spelled := _spell(value)) is not None:
        carried.constants[name] = f"{name} = {spelled}"
    elif (home := _home(value)) is not None:
        own = value.__name__
        _import(f"from {home} import {own}" + (f" as {name}" if name != own else ""), home, carried)
    else:
        what = f"the module {value.__name__}" if isinstance(value, types.ModuleType) else f"a {type(value).__name__}"
        raise NotEjectable(
            f"it uses {name}, {what}, which a project of its own would not have",
            place=place,
            hint="use functions of installed packages, functions that are written by `def`, and plain constants",
        )


def _import(line: str, module: str, carried: Carried) -> None:
    carried.imports.add(line)
    if not is_installed(module):
        carried.packages.add(module.partition(".")[0])


def _is_package(module: str | None) -> bool:
    """Whether a module comes with Python or from a package, other than opwright, that can be installed."""
    root = (module or "").partition(".")[0]
    if is_installed(module) and root != "opwright":
        return True
    try:
        spec = importlib.util.find_spec(root) if root not in ("", "opwright", "__main__") else None
    except ValueError:
        return False
    folders = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    return spec is not None and any(Path(str(spec.origin)).is_relative_to(folder) for folder in folders)


def _home(value: Any) -> str | None:
    """The module of a package where a function or class is found under its name."""
    own = getattr(value, "__name__", None)
    if not isinstance(own, str):
        return None
    said = getattr(value, "__module__", None)
    for home in (*_HOMES, *([said] if isinstance(said, str) and _is_package(said) else [])):
        if getattr(importlib.import_module(home), own, None) is value:
            return home
    return None


def _spell(value: Any) -> str | None:
    """A constant in Python; None if it is none."""
    if isinstance(value, tuple):
        members = [_spell(member) for member in value]
        if type(value) is not tuple or None in members:
            return None
        return f"({', '.join(map(str, members))}{',' if len(members) == 1 else ''})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, torch.device):
        return f"torch.{value!r}"
    return repr(value) if type(value) in _CONSTANTS else None
