"""The folder of a deployment: written whole or not at all, and never over files of others."""

from __future__ import annotations

import ctypes
import fcntl
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opwright.errors import DirectoryTaken

_UNFINISHED = ".opwright-"  # in the names of folders that are being written
_WORKING_FOLDER, _EXCHANGE = -100, 2  # of Linux: AT_FDCWD, RENAME_EXCHANGE
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

    What a process that is killed leaves beside `at` goes when `at` is written the next time.

    Raises:
        DirectoryTaken: If `at` is not ours, or cannot be written.
    """
    refuse_taken(at)
    at = at.absolute()  # linkers and compilers run in other folders
    try:
        at.parent.mkdir(parents=True, exist_ok=True)
        _clear_what_was_killed(at)
        folder = Path(tempfile.mkdtemp(prefix=f".{at.name}{_UNFINISHED}", dir=at.parent))
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise DirectoryTaken(f"{at} cannot be written: {error.strerror}", hint="name another folder") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends, however it does
        yield folder
        folder.chmod(0o777 & ~_umask())
        _replace(folder, at)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write what is in a folder."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read it."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def _clear_what_was_killed(at: Path) -> None:
    """Remove what processes that were killed have left of folders that were to become this one."""
    for left in at.parent.glob(f".{glob.escape(at.name)}{_UNFINISHED}????????"):
        try:
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # gone, or nothing of ours
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
        except OSError:  # it is being written
            continue
        finally:
            os.close(descriptor)


def _replace(folder: Path, at: Path) -> None:
    if not at.exists():
        folder.rename(at)
    elif not _exchanged(folder, at):
        earlier = folder.with_name(f"{folder.name}-earlier")
        at.rename(earlier)
        try:
            folder.rename(at)
        except OSError:
            earlier.rename(at)
            raise
        shutil.rmtree(earlier, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders exchange their names in one step; False where the system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and not rename(
        _WORKING_FOLDER, os.fsencode(one), _WORKING_FOLDER, os.fsencode(other), _EXCHANGE
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
