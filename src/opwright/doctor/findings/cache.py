"""cache: whether the cache directory is usable and safe."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from opwright.doctor.finding import Finding
from opwright.errors import CacheUnusable, UnsafeCache
from opwright.report.figures import in_units
from opwright.settings import Settings
from opwright.toolchain.storage.directory import private_directory

_NAME = "cache"
_ELSEWHERE = "export OPWRIGHT_CACHE=/path/to/a/folder/of/yours"
_SCARCE_BYTES = 1 << 30


def cache(settings: Settings) -> Finding:
    """Test the cache directory: its owner, its permissions, its size, and the free space."""
    try:
        directory = private_directory(settings.cache_directory)
    except UnsafeCache as refusal:
        return Finding(_NAME, "broken", refusal.fact, _closing(refusal.folder))
    except CacheUnusable as refusal:
        return Finding(_NAME, "broken", refusal.fact, _ELSEWHERE)
    if not os.access(directory, os.W_OK | os.X_OK):
        return Finding(
            _NAME, "broken", f"{directory} cannot be written by this user", f"chmod u+wx {_quoted(directory)}"
        )
    entries = list(_entries(directory))
    foreign = [path for path, status in entries if status.st_uid != os.geteuid()]
    if foreign:
        complaint = f"{len(foreign)} files below {directory} belong to another user, such as {foreign[0]}"
        return Finding(_NAME, "broken", complaint, f"sudo chown -R {os.geteuid()} {_quoted(directory)}")
    open_to_all = [path for path, status in entries if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)]
    if open_to_all:
        complaint = (
            f"{len(open_to_all)} files below {directory} can be written by other users, such as {open_to_all[0]}"
        )
        return Finding(_NAME, "broken", complaint, f"chmod -R go-w {_quoted(directory)}")
    return _sizes(directory, sum(status.st_size for _, status in entries))


def _sizes(directory: Path, taken_bytes: int) -> Finding:
    free_bytes = shutil.disk_usage(directory).free
    libraries = sum(1 for _ in directory.glob("libraries/*/*"))
    detail = f"{directory}: {libraries} entries, {in_units(taken_bytes)}; {in_units(free_bytes)} free"
    if free_bytes < _SCARCE_BYTES:
        return Finding(_NAME, "limited", detail, "opwright cache clear")
    return Finding(_NAME, "works", detail)


def _entries(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every file and folder below, except links and what is deleted meanwhile."""
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(folder, name)
            try:
                status = path.lstat()
            except OSError:
                continue
            if not stat.S_ISLNK(status.st_mode):
                yield path, status


def _closing(folder: str | None) -> str:
    """Return the command that takes others' write permission away; a folder of another user needs a new cache."""
    return _ELSEWHERE if folder is None else f"chmod go-w {shlex.quote(folder)}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
