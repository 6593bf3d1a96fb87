"""The content-addressed cache of built libraries.

    libraries/<key[:2]>/<key>/   <name>.cpp, <name>.so, stamp.json     an entry; <name>.o for part of a library
    building/<key>.<random>/     an entry in the making
    failed/<key>/                what a compiler refused
    locks/<key>.lock             held while the entry is being made

An entry comes into being by renaming a finished directory, is believed only if its stamp and the digest of its library
agree, and is never changed.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from opwright.toolchain.directory import private_directory, subdirectory
from opwright.toolchain.locks import try_lock
from opwright.toolchain.recipe import Recipe
from opwright.toolchain.records import digest, read_json


@dataclass(frozen=True, slots=True)
class LibraryCache:
    """The libraries in one cache directory.

    Attributes:
        root: The cache directory.
    """

    root: Path

    @classmethod
    def open(cls, directory: Path) -> LibraryCache:
        """Open, or create, a cache directory that nobody else can write to.

        Raises:
            UnsafeCache: Others can write to it.
            CacheUnusable: It cannot be created.
        """
        return cls(private_directory(directory))

    def library(self, recipe: Recipe) -> Path:
        """Return where the library of a recipe is, or will be."""
        return self._entry(recipe) / f"{recipe.source.name}{recipe.suffix}"

    def lock(self, recipe: Recipe) -> Path:
        """Return the lock file of a recipe."""
        return self._lock(recipe.key)

    def holds(self, recipe: Recipe) -> bool:
        """Say whether there is an intact library for a recipe."""
        try:
            library_digest = digest(self.library(recipe).read_bytes())
        except OSError:
            return False
        return bool(read_json(self._entry(recipe) / "stamp.json") == _stamp(recipe, library_digest))

    def begin(self, recipe: Recipe) -> Path:
        """Make a directory to build in, with the source in it."""
        directory = Path(tempfile.mkdtemp(dir=subdirectory(self.root, "building"), prefix=f"{recipe.key}."))
        (directory / f"{recipe.source.name}.cpp").write_text(recipe.source.text, encoding="utf-8")
        return directory

    def install(self, recipe: Recipe, built: Path) -> None:
        """Turn a directory with a finished library into the entry of its recipe; the caller holds the lock."""
        library_digest = digest((built / f"{recipe.source.name}{recipe.suffix}").read_bytes())
        (built / "stamp.json").write_text(json.dumps(_stamp(recipe, library_digest), indent=2), encoding="utf-8")
        subdirectory(self.root, "libraries", recipe.key[:2])
        self._replace(self._entry(recipe), built)

    def keep_failure(self, recipe: Recipe, built: Path) -> Path:
        """Keep the directory of a build that failed for its user to look at; return the path of the source."""
        kept = subdirectory(self.root, "failed") / recipe.key
        self._replace(kept, built)
        return kept / f"{recipe.source.name}.cpp"

    def has_failed(self, recipe: Recipe) -> bool:
        """Say whether a build that failed was kept."""
        return (self.root / "failed" / recipe.key).exists()

    def sweep(self) -> None:
        """Remove what builds that were killed have left: the directories whose lock nobody holds."""
        for leftover in subdirectory(self.root, "building").iterdir():
            with try_lock(self._lock(leftover.name.partition(".")[0])) as nobody_builds:
                if nobody_builds:
                    shutil.rmtree(leftover, ignore_errors=True)

    def _entry(self, recipe: Recipe) -> Path:
        return self.root / "libraries" / recipe.key[:2] / recipe.key

    def _lock(self, key: str) -> Path:
        return subdirectory(self.root, "locks") / f"{key}.lock"

    def _replace(self, place: Path, directory: Path) -> None:
        """Rename a directory to its place; what was there goes away as a whole first."""
        if place.exists():
            grave = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f"{place.name}."))
            place.rename(grave / "discarded")
            shutil.rmtree(grave, ignore_errors=True)
        directory.rename(place)


def _stamp(recipe: Recipe, library_digest: str) -> dict[str, object]:
    return {"facts": dict(recipe.facts), "sha256": library_digest}
