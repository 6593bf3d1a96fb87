"""The folder of a deployment: written whole or not at all, and never over files of others."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opwright.errors import DirectoryTaken

MANIFEST = "deployment.json"  # says what is in a folder, and that it is ours


def refuse_taken(at: Path) -> None:
    """Refuse a folder that holds something else than a deployment.

    Raises:
        DirectoryTaken: If it does, or is a file.
    """
    if at.exists() and not at.is_dir():
        raise DirectoryTaken(f"{at} is a file", hint="name a folder that does not exist yet")
    if at.is_dir() and any(at.iterdir()) and not (at / MANIFEST).is_file():
        raise DirectoryTaken(
            f"{at} is not empty, and no deployment", hint="name another folder, or one that does not exist yet"
        )


@contextmanager
def written_whole(at: Path) -> Iterator[Path]:
    """Yield the absolute path of a folder to write to; if all goes well it replaces `at`, else nothing of it stays.

    Raises:
        DirectoryTaken: If `at` is not ours, or cannot be written.
    """
    refuse_taken(at)
    at = at.absolute()  # linkers and compilers run in other folders
    try:
        at.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{at.name}-", dir=at.parent))
    except OSError as error:
        raise DirectoryTaken(f"{at} cannot be written: {error.strerror}", hint="name another folder") from error
    try:
        yield folder
        folder.chmod(0o777 & ~_umask())
        _replace(folder, at)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write what is in a folder."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read it."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def _replace(folder: Path, at: Path) -> None:
    if not at.exists():
        folder.rename(at)
        return
    earlier = Path(tempfile.mkdtemp(prefix=f".{at.name}-", dir=at.parent)) / "earlier"
    at.rename(earlier)
    try:
        folder.rename(at)
    except OSError:
        earlier.rename(at)
        raise
    finally:
        shutil.rmtree(earlier.parent, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
