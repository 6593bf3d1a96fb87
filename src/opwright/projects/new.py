"""new: start a project: an operator with samples, tests and a README."""

from __future__ import annotations

from pathlib import Path

from opwright.projects.directory import check_directory, check_name, write_files
from opwright.projects.templates import filled, prose

_HINT = "use letters, digits and underscores, such as gated_unit"
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
        name: The name of the package, and of the operator.
        directory: Where to write it; by default a directory of that name.
        force: Whether to overwrite files in a directory that is not empty.

    Returns:
        The directory, and the files in it.

    Raises:
        ProjectNameUnusable: If a package cannot have that name.
        DirectoryTaken: If the directory is not empty, or cannot be written.
    """
    check_name(name, _HINT)
    target = Path(directory if directory is not None else name)
    check_directory(target, force=force)
    files: dict[str, str | bytes] = {"README.md": prose("begun", "README.md", {"name": name})}
    for path, template in _TEMPLATES.items():
        files[path.replace("NAME", name)] = filled("begun", template, name=name)
    write_files(target, files)
    return target, tuple(files)
