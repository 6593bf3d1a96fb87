"""Write the files of a project, without overwriting other files."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Mapping
from pathlib import Path

from opwright.errors import DirectoryTaken, ProjectNameUnusable

# Names that a package cannot have: PyTorch's own namespaces, and those of modules that projects import.
_TAKEN = frozenset(
    {"torch", "numpy", "opwright", "opwright_kernels", "aten", "prim", "prims", "tests", "setup", "csrc"}
)


def check_name(name: str, hint: str) -> None:
    """Refuse a name that a package cannot have.

    Args:
        name: The name of the package, and the namespace of its operators at the dispatcher.
        hint: How to choose another one.

    Raises:
        ProjectNameUnusable: If it is not an identifier, begins with an underscore, or is already taken.
    """
    if not name.isidentifier() or not name.isascii() or name.startswith("_") or keyword.iskeyword(name):
        raise ProjectNameUnusable(f"{name!r} cannot be the name of a package", hint=hint)
    if name in _TAKEN or name in sys.stdlib_module_names:
        raise ProjectNameUnusable(f"{name!r} is the name of a module that projects import", hint=hint)


def check_directory(directory: Path, *, force: bool) -> None:
    """Refuse a directory that is not empty, unless files in it may be overwritten.

    Raises:
        DirectoryTaken: If it is not empty, or is a file.
    """
    if directory.exists() and not directory.is_dir():
        raise DirectoryTaken(f"{directory} is a file", hint="name a directory that does not exist yet")
    if not force and directory.is_dir() and any(directory.iterdir()):
        raise DirectoryTaken(
            f"{directory} is not empty",
            hint="name another directory; --force (force=True) overwrites files of the same names",
        )


def write_files(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, given by their paths in a directory, which is created if it does not exist.

    Raises:
        DirectoryTaken: If the operating system refuses.
    """
    try:
        for path, content in files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise DirectoryTaken(f"{directory} cannot be written: {error.strerror}") from error
