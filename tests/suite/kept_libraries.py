"""Keep compiled libraries between test runs: the same source, compiler, flags, headers and torch are built once.

    <folder>/libraries/        libraries by their content (opwright/toolchain/storage/cache.py)
    <folder>/locks/            held while any run builds a library
    <folder>/compilers/        the quick compilers, whose paths are among the facts that a library depends on
    <folder>/runs/<random>/    the cache directory of one run, in which `libraries` and `locks` are links

A run starts without records, so that everything is derived again and only compilation is saved. The folder is
`.pytest_cache/d/opwright`, or OPWRIGHT_TESTS_CACHE, and as private as a cache directory must be. When a run starts and
no other is running, the least recently used libraries are removed until the rest is below a limit.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opwright.errors import UnsafeCache
from opwright.toolchain.storage.directory import private_directory

VARIABLE = "OPWRIGHT_TESTS_CACHE"
LIMIT_BYTES = 2 * 2**30
_SHARED = ("libraries", "locks")


def folder_of(config: pytest.Config) -> Path:
    """The folder of this checkout, or a temporary one if other users could write to it."""
    if chosen := os.environ.get(VARIABLE):
        return private_directory(Path(chosen))
    try:
        return private_directory(config.rootpath / ".pytest_cache" / "d" / "opwright")
    except UnsafeCache:
        return Path(tempfile.mkdtemp(prefix="opwright-tests-"))


@contextmanager
def cache_of_a_run(folder: Path, limit_bytes: int = LIMIT_BYTES) -> Iterator[Path]:
    """A cache directory without records, with the libraries of earlier runs."""
    descriptor = os.open(folder / "in_use", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if _nobody_else_runs(descriptor):
            for left_behind in ("runs", "locks"):
                shutil.rmtree(folder / left_behind, ignore_errors=True)
            prune(folder / "libraries", limit_bytes)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        for name in ("runs", *_SHARED):
            (folder / name).mkdir(exist_ok=True, mode=0o700)
        directory = Path(tempfile.mkdtemp(dir=folder / "runs"))
        yield directory_with_libraries_of(folder, directory)
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(descriptor)


def directory_with_libraries_of(shared: Path, directory: Path) -> Path:
    """Make a folder a cache directory that has only the libraries of another one.

    Both must be on one file system.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in _SHARED:
        (directory / name).symlink_to(os.path.realpath(shared / name))
    return directory


def another_cache() -> Path:
    """A new cache directory for this run, without records, and with the libraries that all of its caches share."""
    own = Path(os.environ["OPWRIGHT_CACHE"])
    return directory_with_libraries_of(own, Path(tempfile.mkdtemp(dir=own.parent)))


def kept(key: str, make: Callable[[], bytes]) -> bytes:
    """What an earlier run made under a key, else what is made now, kept beside the libraries."""
    entry = Path(os.environ["OPWRIGHT_CACHE"]) / "libraries" / key[:2] / key
    if not (entry / "made").exists():
        entry.mkdir(parents=True, exist_ok=True, mode=0o700)
        begun = entry / f"begun-{os.getpid()}"
        begun.write_bytes(make())
        begun.replace(entry / "made")
    return (entry / "made").read_bytes()


def prune(libraries: Path, limit_bytes: int) -> None:
    """Remove the least recently used libraries until the rest is below a limit."""
    entries = sorted(((_last_use(entry), entry) for entry in libraries.glob("*/*")), reverse=True)
    kept_bytes = 0
    for _, entry in entries:
        kept_bytes += sum(file.stat().st_size for file in entry.iterdir())
        if kept_bytes > limit_bytes:
            shutil.rmtree(entry)


def _last_use(entry: Path) -> float:
    return max((max(file.stat().st_atime, file.stat().st_mtime) for file in entry.iterdir()), default=0.0)


def _nobody_else_runs(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
