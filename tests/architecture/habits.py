"""Habits that hold on every floor. A check takes the modules and returns one sentence per violation."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tests.architecture.source_tree import Module

Modules = Mapping[str, Module]

VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "core", "manager"})
ENVIRONMENT_READER = "opwright.settings"
ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})
PICKLING_MODULES = frozenset({"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"})
TORCH_LOADERS = frozenset({"load"})
UNPICKLES_WHAT_IT_PICKLED = frozenset({"opwright.auditing.families.copies"})
MOST_LINES = 400


def no_vague_name(modules: Modules) -> list[str]:
    """A module is called after its idea."""
    return [f"{name} has a vague name" for name in modules if VAGUE_NAMES & set(name.split("."))]


def environment_is_read_in_settings(modules: Modules) -> list[str]:
    """Environment variables are read in one file."""
    return [
        f"{module.name}:{line} reads the environment"
        for module in modules.values()
        if module.name != ENVIRONMENT_READER
        for line in sorted(_lines_that_name(module, "os", ENVIRONMENT))
    ]


def nothing_is_unpickled(modules: Modules) -> list[str]:
    """A cache or a file never runs code when it is read."""
    return [
        f"{module.name}:{line} can unpickle"
        for module in modules.values()
        if module.name not in UNPICKLES_WHAT_IT_PICKLED
        for line in sorted(_pickling_imports(module) | _lines_that_name(module, "torch", TORCH_LOADERS))
    ]


def no_module_is_long(modules: Modules) -> list[str]:
    """A long module holds more than one idea."""
    return [
        f"{module.name} has {module.line_count} lines, {MOST_LINES} are the most"
        for module in modules.values()
        if module.line_count > MOST_LINES
    ]


def _pickling_imports(module: Module) -> set[int]:
    return {imported.line for imported in module.imports if imported.target.split(".")[0] in PICKLING_MODULES}


def _lines_that_name(module: Module, owner: str, attributes: frozenset[str]) -> set[int]:
    """Lines that say `owner.attribute`, or import an attribute from the owner."""
    lines = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == owner and attribute in attributes:
                lines.add(node.lineno)
            case ast.ImportFrom(module=name, names=aliases) if name == owner:
                lines |= {node.lineno for alias in aliases if alias.name in attributes}
    return lines


HABIT_CHECKS = (
    no_vague_name,
    environment_is_read_in_settings,
    nothing_is_unpickled,
    no_module_is_long,
)
