"""The source of references as one module: the functions as written, and all user code that they use.

    F.elu(g)     import torch.nn.functional as F
    SLOPE        SLOPE = 0.01
    gate(x)      the function `gate`, comments included, and what it uses in turn; for an operator, its reference
    @opwright.optimizer(state=("average",))      @optimizer(state=("average",)), of a module that the text imports

An ejected project and a wheel both hold such a module. Whatever has no source is refused by name.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import math
import symtable
import sys
import sysconfig
import textwrap
import types
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from opwright.errors import ReferenceWithoutText
from opwright.operators.base import BaseOperator
from opwright.tracing.interface.signature import place_of
from opwright.tracing.outside.purity import is_installed

_CONSTANTS = (int, float, complex, str, bytes, bool, type(None), type(...), torch.dtype, torch.device)
# The modules of torch's built-in functions, which do not name theirs.
_HOMES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft", "math")
_MISSING = object()


@dataclass(slots=True)
class ReferenceText:
    """The parts of the module.

    Attributes:
        with_packages: Whether it may import packages other than torch.
        imports: Lines such as "import math".
        packages: The packages it imports, without torch.
        constants: The spelling of each constant, by name.
        functions: Sources by name, each after those that it uses.
        objects: What each name stands for.
        decorated: Functions that keep their decorator, each with what it is called in the module.
    """

    with_packages: bool
    imports: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    constants: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    decorated: dict[types.FunctionType, str] = field(default_factory=dict)

    def text(self, docstring: str) -> str:
        """The module."""
        imports = sorted(self.imports, key=lambda line: (line.startswith("from"), line))
        head = [f'"""{docstring}"""', "from __future__ import annotations", *(["\n".join(imports)] if imports else [])]
        constants = "\n".join(f"{name} = {spelled}" for name, spelled in self.constants.items())
        head += [constants] if constants else []
        return "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(self.functions.values()) + "\n"

    def add(self, name: str, value: Any, user: Any) -> None:
        """Add what a name stands for in a function."""
        value = inspect.unwrap(value.reference) if isinstance(value, BaseOperator) else value
        if name in self.objects:
            known = self.objects[name]
            if known is not value and (spell(value) is None or spell(value) != spell(known)):
                raise _refused(user, f"and another function mean different things by {name}")
        elif isinstance(value, types.FunctionType) and not self._can_import(value.__module__):
            self._add_function(name, value)
        else:
            self.objects[name] = value
            self._add_plain(name, value, user)

    def _add_function(self, name: str, function: types.FunctionType) -> None:
        self.objects[name] = function
        node, text, above = _definition(function)
        if (decorator := self.decorated.get(function)) is not None:
            text = f"{self._decorator(node, above, function, decorator)}\n{text}"
        if node.name != name:
            self.add(node.name, function, function)
            text = f"{name} = {node.name}"
        else:
            needed, annotated = _names_used(node)
            self._add_used(sorted(needed), function)
            for each in sorted(annotated - needed - {name}):
                with suppress(ReferenceWithoutText):  # the module does not evaluate annotations
                    self._add_used([each], function)
        self.functions[name] = text

    def _decorator(self, node: ast.FunctionDef, above: str, function: types.FunctionType, name: str) -> str:
        """A decorator that is called with arguments, as it was written, but under another name."""
        match node.decorator_list:
            case [ast.Call() as call]:
                called, whole = (ast.get_source_segment(above, part) for part in (call.func, call))
                assert called is not None
                assert whole is not None
            case _:
                raise _refused(function, "is not decorated where it is defined", f"write @opwright.{name}(…) above it")
        used = ast.unparse(ast.Tuple([*call.args, *(keyword.value for keyword in call.keywords)]))
        self._add_used(sorted(_free_names(symtable.symtable(used, name, "exec"))), function)
        return f"@{name}{whole.removeprefix(called)}"

    def _add_used(self, names: Iterable[str], function: types.FunctionType) -> None:
        scope = _scope(function)
        for name in names:
            if name in scope:
                self.add(name, scope[name], function)
            elif not hasattr(builtins, name):
                raise _refused(function, f"uses {name}, which is not defined")

    def _add_plain(self, name: str, value: Any, user: Any) -> None:
        if isinstance(value, types.ModuleType) and self._can_import(value.__name__):
            self._import(_import_of(value.__name__, name), value.__name__)
        elif (spelled := spell(value)) is not None:
            self.constants[name] = spelled
            if "torch." in spelled:
                self.imports.add("import torch")
        elif (home := self._home(value)) is not None:
            renamed = f" as {name}" if name != value.__name__ else ""
            self._import(f"from {home} import {value.__name__}{renamed}", home)
        else:
            module = isinstance(value, types.ModuleType)
            raise _refused(user, f"uses {name}, " + (f"the module {value.__name__}" if module else _a(value)))

    def _import(self, line: str, module: str) -> None:
        self.imports.add(line)
        if not _comes_with_torch(module):
            self.packages.add(module.partition(".")[0])

    def _can_import(self, module: str | None) -> bool:
        return _comes_with_torch(module) or (self.with_packages and _is_package(module))

    def _home(self, value: Any) -> str | None:
        """The module where a function or class is found under its name."""
        own, said = getattr(value, "__name__", None), getattr(value, "__module__", None)
        if not isinstance(own, str):
            return None
        homes = (*_HOMES, *([said] if isinstance(said, str) and self._can_import(said) else []))
        return next((home for home in homes if getattr(importlib.import_module(home), own, None) is value), None)


def reference_text(
    functions: Sequence[Callable[..., Any]],
    *,
    with_packages: bool,
    decorated: Sequence[Callable[..., Any]] = (),
    decorator: Callable[..., Any] | None = None,
) -> ReferenceText:
    """Collect the source of some functions and of everything that they use.

    Args:
        functions: They keep their names.
        with_packages: Whether packages other than torch may be imported.
        decorated: More of them, which keep their decorator of opwright and its arguments.
        decorator: What stands for that decorator, imported from where it is defined.

    Raises:
        ReferenceWithoutText: If a source cannot be read, or something in it has no text.
    """
    collected = ReferenceText(with_packages)
    if decorator is not None and decorated:
        collected.objects[decorator.__name__] = decorator
        collected.imports.add(f"from {decorator.__module__} import {decorator.__name__}")
    for function in map(inspect.unwrap, (*functions, *decorated)):
        if not isinstance(function, types.FunctionType):
            raise _refused(function, "is not a function written in Python")
        if function in decorated:
            assert decorator is not None
            collected.decorated[function] = decorator.__name__
        collected.add(function.__name__, function, function)
    return collected


def spell(value: Any) -> str | None:
    """Spell a constant in Python; None if it is not one."""
    if type(value) is tuple:
        members = [spell(member) for member in value]
        return None if None in members else f"({', '.join(map(str, members))}{',' * (len(members) == 1)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, complex):
        return f"complex({spell(value.real)}, {spell(value.imag)})"
    if isinstance(value, torch.device):
        return f"torch.{value!r}"
    return repr(value) if type(value) in _CONSTANTS else None


def _definition(function: types.FunctionType) -> tuple[ast.FunctionDef, str, str]:
    """A function's node, its text from `def` on, and the text with decorators."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        node = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError) as error:
        raise _refused(function, "has no source that can be read", "define it by `def`, in a file") from error
    if not isinstance(node, ast.FunctionDef):
        raise _refused(function, "is not defined by `def`", "define it by `def`")
    for decorator in node.decorator_list:
        if not _is_ours(decorator, function):
            fact = f"has the decorator {ast.unparse(decorator)}, which would be lost"
            raise _refused(function, fact, "move what the decorator does into the function")
    return node, "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno]), text


def _is_ours(decorator: ast.expr, function: types.FunctionType) -> bool:
    """Whether a decorator is one of opwright's, which the text leaves out."""
    root: ast.expr = decorator
    while isinstance(root, ast.Call | ast.Attribute):
        root = root.func if isinstance(root, ast.Call) else root.value
    value = _scope(function).get(root.id) if isinstance(root, ast.Name) else None
    said = getattr(value, "__module__", None) or getattr(value, "__name__", None)
    return isinstance(said, str) and said.partition(".")[0] == "opwright"


def _names_used(node: ast.FunctionDef) -> tuple[set[str], set[str]]:
    """The global and closure names that a function uses, and those in its annotations."""
    parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    written = [node.returns, *(parameter.annotation for parameter in parameters if parameter is not None)]
    annotations = [annotation for annotation in written if annotation is not None]
    for parameter in parameters:
        if parameter is not None:
            parameter.annotation = None
    node.returns, node.decorator_list = None, []
    needed = _free_names(symtable.symtable(ast.unparse(node), node.name, "exec"))
    named = {part.id for annotation in annotations for part in ast.walk(annotation) if isinstance(part, ast.Name)}
    return needed, named


def _free_names(table: symtable.SymbolTable) -> set[str]:
    """Names that a text reads and does not define: at its top, and the global ones of functions."""
    at_top = table.get_type() == "module"
    own = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if (symbol.is_referenced() and not symbol.is_assigned() if at_top else symbol.is_global())
    }
    defined = {symbol.get_name() for symbol in table.get_symbols() if at_top and symbol.is_assigned()}
    return own.union(*map(_free_names, table.get_children())) - defined


def _scope(function: types.FunctionType) -> dict[str, Any]:
    return {**function.__globals__, **inspect.getclosurevars(function).nonlocals}


def _comes_with_torch(module: str | None) -> bool:
    root = (module or "").partition(".")[0]
    return root == "torch" or (root in sys.stdlib_module_names and is_installed(module))


def _is_package(module: str | None) -> bool:
    """Whether a module is from a package, other than opwright, that can be installed."""
    root = (module or "").partition(".")[0]
    if is_installed(module) and root != "opwright":
        return True
    try:
        spec = importlib.util.find_spec(root) if root not in ("", "opwright", "__main__") else None
    except ValueError:
        return False
    folders = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    return spec is not None and any(Path(str(spec.origin)).is_relative_to(folder) for folder in folders)


def _import_of(module: str, name: str) -> str:
    parent, _, last = module.rpartition(".")
    if module == name:
        return f"import {module}"
    return f"from {parent} import {last}" if last == name and parent else f"import {module} as {name}"


def _a(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _refused(function: Any, fact: str, hint: str | None = None) -> ReferenceWithoutText:
    name = getattr(function, "__name__", type(function).__name__)
    place = None
    with suppress(AttributeError):
        place = place_of(function)
    return ReferenceWithoutText(f"{name} {fact}", place=place, hint=hint)
