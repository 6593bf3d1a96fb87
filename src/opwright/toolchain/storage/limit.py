"""The size of the cache, and its limit: least recently used entries are removed first.

Three kinds of entries stay at any age: those being built, those that a process on this machine has loaded, and those
used in the last hour, which may be about to be loaded.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from opwright.toolchain.storage.directory import subdirectory
from opwright.toolchain.storage.locks import try_lock

_STAMP = "stamp.json"
_LATELY_S = 600.0
_SPARED_S = 3600.0
_INTERVAL_S = 3600.0
_PATTERNS = {"libraries": "libraries/*/*", "failed": "failed/*", "records": "records/*/*.json"}


@dataclass(frozen=True, slots=True)
class Item:
    """Something in the cache that can go by itself.

    Attributes:
        kind: "libraries", "failed" or "records".
        path: The folder of an entry, or the file of a record.
        size_bytes: What it takes.
        used_s: When it was used, in seconds since the epoch.
    """

    kind: str
    path: Path
    size_bytes: int
    used_s: float


def mark_used(path: Path) -> None:
    """Give a record, or the stamp of an entry, the time of now, unless it was used a moment ago or is read-only."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > _LATELY_S:
            os.utime(path)


def items(root: Path) -> Iterator[Item]:
    """Look at everything in a cache directory that can go; what vanishes meanwhile is passed over."""
    for kind, pattern in _PATTERNS.items():
        for path in root.glob(pattern):
            with suppress(OSError):
                files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
                marked = path / _STAMP if (path / _STAMP).exists() else path
                yield Item(kind, path, sum(each.stat().st_size for each in files), marked.stat().st_mtime)


def shrink(root: Path, limit_bytes: int, *, spared_s: float = _SPARED_S) -> list[Item]:
    """Remove least recently used entries until the rest fits, and return them.

    Args:
        root: The cache directory.
        limit_bytes: What it may take.
        spared_s: How long ago something must have been used to go.
    """
    found = sorted(items(root), key=lambda item: item.used_s)
    excess = sum(item.size_bytes for item in found) - limit_bytes
    if excess <= 0:
        return []
    loaded = set(_loaded_from(root))
    latest = time.time() - spared_s
    removed = []
    for item in found:
        if excess <= 0 or item.used_s > latest:
            break
        if item.path not in loaded and _remove(root, item):
            removed.append(item)
            excess -= item.size_bytes
    return removed


def shrink_now_and_then(root: Path, limit_bytes: int | None) -> None:
    """Keep a cache directory within its limit, with one scan of it per hour."""
    if limit_bytes is None:
        return
    turn = subdirectory(root, "locks") / "limit.lock"
    with suppress(OSError), try_lock(turn) as mine:
        if mine and time.time() - turn.stat().st_mtime > _INTERVAL_S:
            os.utime(turn)
            shrink(root, limit_bytes)


def _remove(root: Path, item: Item) -> bool:
    """Remove something as a whole, unless its lock is held."""
    if item.kind == "records":
        item.path.unlink(missing_ok=True)
        return True
    with try_lock(subdirectory(root, "locks") / f"{item.path.name}.lock") as nobody_builds:
        if nobody_builds:
            grave = Path(tempfile.mkdtemp(dir=subdirectory(root, "building"), prefix=f"{item.path.name}."))
            item.path.rename(grave / item.path.name)
            shutil.rmtree(grave, ignore_errors=True)
        return nobody_builds


def _loaded_from(root: Path) -> Iterator[Path]:
    """List the folders of entries with a file that a process here has mapped, as far as this user may know."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            for line in maps.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
                _, slash, rest = line.partition("/")
                if slash and f"/{rest}".startswith(f"{root}/"):
                    yield Path(f"/{rest}").parent
