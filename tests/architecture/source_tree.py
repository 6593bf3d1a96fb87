"""Reads a package from its files, importing nothing: each module with its imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ImportStatement = ast.Import | ast.ImportFrom


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module; `late` when the statement stands inside a function."""

    target: str
    line: int
    late: bool


@dataclass(frozen=True, slots=True)
class Module:
    """A module, under its dotted name."""

    name: str
    path: Path
    tree: ast.Module
    line_count: int
    imports: tuple[Import, ...]


def read_package(*folders: Path) -> dict[str, Module]:
    """Read every module below some folders, keyed by dotted name; a folder's own name comes first."""
    files = {_dotted_name(path, folder): path for folder in folders for path in sorted(folder.rglob("*.py"))}
    return {name: read_module(name, path, frozenset(files)) for name, path in files.items()}


def _dotted_name(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_module(name: str, path: Path, known: frozenset[str]) -> Module:
    """Read one module; `known` are the names of modules, to tell from those of what is in them."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, filename=str(path))
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports = tuple(
        Import(target, statement.lineno, late)
        for statement, late in _statements(tree)
        for target in _targets(statement, package, known)
    )
    return Module(name, path, tree, len(source.splitlines()), imports)


def _statements(node: ast.AST, late: bool = False) -> Iterator[tuple[ImportStatement, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ImportStatement):
            yield child, late
        else:
            yield from _statements(child, late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def _targets(statement: ImportStatement, package: str, known: frozenset[str]) -> list[str]:
    """`from a import b` is an import of `a.b` when that is a module, and of `a` otherwise."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    base = _absolute(statement, package)
    submodules = [f"{base}.{alias.name}" for alias in statement.names]
    return sorted({name if name in known else base for name in submodules})


def _absolute(statement: ast.ImportFrom, package: str) -> str:
    if statement.level == 0:
        return statement.module or ""
    parts = package.split(".")
    anchor = parts[: len(parts) - statement.level + 1]
    return ".".join([*anchor, statement.module] if statement.module else anchor)
