"""Write the files of a project, all or none, without overwriting other work."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Mapping
from pathlib import Path

from opwright.errors import DirectoryTaken, ProjectNameUnusable

# Names that a package would take from others: PyTorch's own namespaces, and what stands in every project.
_TAKEN = frozenset(
    {"torch", "numpy", "opwright", "opwright_kernels", "aten", "prim", "prims", "tests", "setup", "csrc"}
)


def check_name(name: str, hint: str) -> None:
    """Refuse a name that a package cannot have.

    Args:
        name: What the package, and its operators at the dispatcher, are to be called.
        hint: How to choose another one.

    Raises:
        ProjectNameUnusable: If it is no identifier, begins with an underscore, or means something else already.
    """
    if not name.isidentifier() or not name.isascii() or name.startswith("_") or keyword.iskeyword(name):
        raise ProjectNameUnusable(f"{name!r} cannot be the name of a package", hint=hint)
    if name in _TAKEN or name in sys.stdlib_module_names:
        raise ProjectNameUnusable(f"{name!r} is the name of something else that projects import", hint=hint)


def check_directory(directory: Path, *, force: bool) -> None:
    """Refuse a directory that is not empty, unless files in it may be written over.

    Raises:
        DirectoryTaken: If it is not empty, or is a file.
    """
    if directory.exists() and not directory.is_dir():
        raise DirectoryTaken(f"{directory} is a file", hint="name a directory that does not exist yet")
    if not force and directory.is_dir() and any(directory.iterdir()):
        raise DirectoryTaken(
            f"{directory} is not empty",
            hint="name another directory; --force (force=True) writes over files of the same names",
        )


def write_files(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files by their paths in a directory, which is made if it does not exist.

    Raises:
        DirectoryTaken: If the operating system does not let us.
    """
    try:
        for path, content in files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise DirectoryTaken(f"{directory} cannot be written: {error.strerror}") from error
