"""Extensions: Python modules in C++ against PyTorch's own headers, for one version of both."""

from __future__ import annotations

from pathlib import Path

from opwright.settings import Settings
from opwright.toolchain.build import build_recipes
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.headers.torch_build import against_torch, python_facts
from opwright.toolchain.process.notice import Notice
from opwright.toolchain.recipe import Recipe, recipe
from opwright.toolchain.source import Source
from opwright.toolchain.storage.cache import LibraryCache
from opwright.toolchain.storage.locks import try_lock
from opwright.toolchain.storage.records import digest

# Without NDEBUG, pybind11 asks whether the GIL is held whenever it counts a reference: 15 ns for each.
_FLAGS = ("-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-w")
_BUILD_TIMEOUT_S = 300.0


class Extension:
    """One extension, built or not.

    Args:
        directory: Where its sources are: `<name>.cpp`, and the headers that it includes.
        name: What its source is called.
        settings: Where the cache is, and which compiler to use.

    Every method may raise CompilerMissing, UnsafeCache and CacheUnusable, as `build` of kernels does.
    """

    def __init__(self, directory: Path, name: str, settings: Settings) -> None:
        self.settings = settings
        self._directory = directory
        self._name = name
        # A cached_property holds a lock in Python 3.11, which a forked child would find held.
        self._opened: LibraryCache | None = None
        self._found: Recipe | None = None

    def find(self) -> Path | None:
        """Return the built module; None if the cache does not hold it."""
        return self._cache.library(self._recipe) if self._cache.holds(self._recipe) else None

    def build(self) -> None:
        """Build the module if the cache does not hold it.

        Raises:
            BuildFailed: The compiler refused it; there may be no headers of Python here.
        """
        if self.find() is None:
            arguments = against_torch(self._directory)
            build_recipes((self._recipe,), arguments, self._cache, _BUILD_TIMEOUT_S, Notice(wanted=False))

    def was_refused(self) -> bool:
        """Whether the compiler has refused it before."""
        return self._cache.has_failed(self._recipe)

    def is_being_built(self) -> bool:
        """Whether a process is building it now."""
        with try_lock(self._cache.lock(self._recipe)) as nobody_builds:
            return not nobody_builds

    @property
    def _cache(self) -> LibraryCache:
        self._opened = self._opened or LibraryCache.open(self.settings.cache_directory)
        return self._opened

    @property
    def _recipe(self) -> Recipe:
        self._found = self._found or self._make_recipe()
        return self._found

    def _make_recipe(self) -> Recipe:
        headers = {header.name: digest(header.read_bytes()) for header in sorted(self._directory.rglob("*.h*"))}
        facts = {**headers, **python_facts()}
        source = Source(self._name, (self._directory / f"{self._name}.cpp").read_text(encoding="utf-8"))
        return recipe(source, find_compiler(self.settings), _FLAGS, facts)
