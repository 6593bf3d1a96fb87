"""Libraries of sources that include a user's headers, which only the compiler can list.

`extensions/objects.py` does the same for objects, by the same records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from opwright.settings import Settings
from opwright.toolchain.build import COMPILE_TIMEOUT_S, build_recipes, link_against_torch
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.headers.dependencies import marks, namesakes
from opwright.toolchain.headers.including import ATTEMPTS, WRITING_DEPENDENCIES, Including, never_settled
from opwright.toolchain.headers.torch_build import SYSTEM_FOLDERS, include_folders
from opwright.toolchain.process.notice import Notice
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, Recipe, header_digests, kernel_recipe
from opwright.toolchain.source import Source
from opwright.toolchain.storage.cache import LibraryCache
from opwright.toolchain.storage.locks import hold
from opwright.toolchain.storage.records import RecordStore, canonical_json, digest

_RECORDS = "headers_by_hand"
_FLAGS_OF_FOLDERS = ("-I", "-iquote", "-isystem", "-idirafter")


@dataclass(frozen=True, slots=True)
class Depending:
    """A library to be.

    Attributes:
        make: Gives its recipe, by what there is to say of headers; its flags are among others `WRITING_DEPENDENCIES`.
        arguments: Gives what the compiler is told besides.
        flags: The flags of the author, with which folders are searched for headers.
        settings: Where the records are, and whether to tell that a build is under way.
        timeout_s: How long the compiler may take.
    """

    make: Callable[[Mapping[str, str]], Recipe]
    arguments: Callable[[], tuple[str, ...]]
    flags: tuple[str, ...]
    settings: Settings
    timeout_s: float

    def build(self, cache: LibraryCache) -> Path:
        """Return the library, building it if the cache does not hold it.

        Raises:
            BuildFailed: The compiler refused the source or took too long, or headers change all the time.
        """
        found = self._find(cache)
        if found is not None:
            return found
        notice = Notice(wanted=self.settings.notify)
        name = self._trial().source.name
        waiting = lambda pid: notice.tick(f"waiting for process {pid} to build {name}")  # noqa: E731
        with hold([cache.lock(self._lock())], waiting, 2 * self.timeout_s):
            including = self._including()
            for _ in range(ATTEMPTS):
                found = self._find(cache) or self._compile(cache, notice, including)
                if found is not None:
                    return found
        raise never_settled(name)

    def _including(self) -> Including[Recipe]:
        return Including(RecordStore(self.settings), _RECORDS, self._trial().key, self._made)

    def _find(self, cache: LibraryCache) -> Path | None:
        made = self._including().known()
        return cache.library(made) if made is not None and cache.holds(made) else None

    def _compile(self, cache: LibraryCache, notice: Notice, including: Including[Recipe]) -> Path | None:
        """Compile, and keep what was made by the headers that were read; None if one may have changed meanwhile."""
        trial, begun_ns = self._trial(), time.time_ns()
        cache.discard(trial)  # of a process that was killed
        build_recipes((trial,), self.arguments(), cache, self.timeout_s, notice)
        made = including.settled(cache.library(trial).parent, begun_ns)
        if made is None:
            return None
        cache.move(trial, made, self._lock())
        return cache.library(made)

    def _trial(self) -> Recipe:
        return self.make({"headers of the author": "not known"})

    def _lock(self) -> Recipe:
        """The lock of the whole build; the trial has one of its own."""
        return self.make({"headers of the author": "being read"})

    def _made(self, headers: Sequence[str]) -> Recipe | None:
        """The recipe that depends on headers as they are now; None if one is gone."""
        installed = _installed()
        found = marks(headers, installed)
        if found is None:
            return None
        own = {path: mark for path, mark in found.own.items() if not path.startswith(f"{INCLUDE_DIRECTORY}/")}
        source = self._trial().source.text.encode()
        rivals = namesakes(found, _folders(self.flags), installed, source)
        return self.make(
            {
                **own,
                "installed": digest(canonical_json(dict(found.installed))),
                "namesakes": digest(canonical_json(rivals)),
            }
        )


def build_with_headers(
    source: Source, settings: Settings, flags: tuple[str, ...], *, timeout_s: float = COMPILE_TIMEOUT_S
) -> Path:
    """Return the library of a source that may include headers of its author, as `build` does for those that do not.

    Args:
        source: What to build.
        settings: Where the cache is, which compiler to use, whether to tell that a build is under way.
        flags: Flags behind those of every kernel, with the folders where headers are.
        timeout_s: How long a compilation may take.

    Raises:
        BuildFailed, CompilerMissing, UnsafeCache, CacheUnusable: As `build` does.
    """
    cache = LibraryCache.open(settings.cache_directory)
    compiler = find_compiler(settings)
    known = header_digests(INCLUDE_DIRECTORY)

    def make(headers: Mapping[str, str]) -> Recipe:
        return kernel_recipe(source, compiler, {**known, **headers}, (*flags, *WRITING_DEPENDENCIES))

    def arguments() -> tuple[str, ...]:
        return f"-I{INCLUDE_DIRECTORY}", *link_against_torch(compiler, cache, timeout_s)

    return Depending(make, arguments, flags, settings, timeout_s).build(cache)


def _folders(flags: Sequence[str]) -> list[Path]:
    """The folders that flags name to be searched for headers."""
    return [
        Path(flag.removeprefix(kind) or following)
        for flag, following in pairwise((*flags, ""))
        for kind in _FLAGS_OF_FOLDERS
        if flag.startswith(kind)
    ]


def _installed() -> tuple[Path, ...]:
    """Where headers change only when something is installed."""
    return (INCLUDE_DIRECTORY, *include_folders(), *SYSTEM_FOLDERS)
