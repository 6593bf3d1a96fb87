"""The cache directory: made private, refused when others could plant a library in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opwright.errors import CacheUnusable, UnsafeCache

ELSEWHERE = "choose another folder with OPWRIGHT_CACHE=/path/to/folder"


def private_directory(path: Path) -> Path:
    """Create the cache directory, with mode 0700, where it is missing, and return its absolute path.

    Raises:
        UnsafeCache: It belongs to another user, or its group or everybody may write to it.
        CacheUnusable: It cannot be created or looked at.
    """
    path = path.absolute()
    with refusing_os_errors(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    if status.st_uid != os.geteuid():
        raise UnsafeCache(f"the cache directory {path} belongs to another user (uid {status.st_uid})", hint=ELSEWHERE)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafeCache(
            f"the cache directory {path} can be written by other users (mode {mode:04o})",
            hint=f"chmod go-w {path}, once you trust what is in it; or {ELSEWHERE}",
        )
    return path


def subdirectory(parent: Path, *names: str) -> Path:
    """Create, with mode 0700 at every level, a directory below the cache directory."""
    for name in names:
        parent = parent / name
        parent.mkdir(mode=0o700, exist_ok=True)
    return parent


@contextmanager
def refusing_os_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses in the cache directory `path` into a CacheUnusable."""
    try:
        yield
    except OSError as error:
        raise CacheUnusable(f"the cache directory {path} cannot be used: {error}", hint=ELSEWHERE) from error
