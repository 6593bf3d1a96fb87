"""new: a project to begin with, an operator with samples, tests and a README."""

from __future__ import annotations

from pathlib import Path

from opwright.projects.directory import check_directory, check_name, write_files
from opwright.projects.templates import filled, prose

_HINT = "choose letters, digits and underscores, such as gated_unit"
# Template by path; NAME in a path is the project's.
_TEMPLATES = {
    "pyproject.toml": "pyproject.toml",
    "Makefile": "Makefile",
    ".gitignore": "gitignore",
    "NAME/__init__.py": "package.py",
    "NAME/operators.py": "operators.py",
    "tests/test_NAME.py": "test_operators.py",
}


def new_project(name: str, directory: str | Path | None = None, *, force: bool = False) -> tuple[Path, tuple[str, ...]]:
    """Write a project with one operator in it.

    Args:
        name: Of the package, and of the operator.
        directory: Where to write it; by default a directory of that name.
        force: Whether to write over files in a directory that is not empty.

    Returns:
        The directory, and the files in it.

    Raises:
        ProjectNameUnusable: If no package can be called so.
        DirectoryTaken: If there is something in the directory, or it cannot be written.
    """
    check_name(name, _HINT)
    target = Path(directory if directory is not None else name)
    check_directory(target, force=force)
    files: dict[str, str | bytes] = {"README.md": prose("begun", "README.md", {"name": name})}
    for path, template in _TEMPLATES.items():
        files[path.replace("NAME", name)] = filled("begun", template, name=name)
    write_files(target, files)
    return target, tuple(files)
