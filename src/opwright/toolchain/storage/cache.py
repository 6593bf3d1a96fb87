"""The content-addressed cache of built libraries.

    libraries/<key[:2]>/<key>/   its papers, its product, stamp.json   an entry: <name>.cpp and <name>.so, or <name>.o
    building/<key>.<random>/     an entry in the making
    failed/<key>/                what a compiler refused
    locks/<key>.lock             held while the entry is being made

An entry comes into being by renaming a finished directory, is believed only if its stamp and the digest of its library
agree, and is never changed, except for the time of its stamp, which is that of its last use. `limit.py` removes
entries.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from opwright.toolchain.storage.directory import private_directory, subdirectory
from opwright.toolchain.storage.limit import mark_used
from opwright.toolchain.storage.locks import try_lock
from opwright.toolchain.storage.records import digest, read_json


class Entry(Protocol):
    """What the cache can hold: the recipe of a kernel, an object, a library of a user's own sources."""

    @property
    def key(self) -> str:
        """The digest of all that it depends on."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What it depends on, fit for JSON."""

    @property
    def product(self) -> str:
        """The name of the file that is made."""

    @property
    def papers(self) -> Mapping[str, str]:
        """The texts that stand beside it, by the names of their files."""


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

    def library(self, entry: Entry) -> Path:
        """Return where the product of an entry is, or will be."""
        return self._place(entry) / entry.product

    def lock(self, entry: Entry) -> Path:
        """Return the lock file of an entry."""
        return self._lock(entry.key)

    def holds(self, entry: Entry) -> bool:
        """Say whether there is an intact product of an entry."""
        try:
            product_digest = digest(self.library(entry).read_bytes())
        except OSError:
            return False
        stamp = self._place(entry) / "stamp.json"
        held = bool(read_json(stamp) == _stamp(entry, product_digest))
        if held:
            mark_used(stamp)
        return held

    def begin(self, entry: Entry) -> Path:
        """Make a directory to build in, with the papers in it; the caller holds the lock.

        What stands there under the same key was left by a process that was killed.
        """
        building = subdirectory(self.root, "building")
        for leftover in building.glob(f"{entry.key}.*"):
            shutil.rmtree(leftover, ignore_errors=True)
        directory = Path(tempfile.mkdtemp(dir=building, prefix=f"{entry.key}."))
        for name, text in entry.papers.items():
            (directory / name).write_text(text, encoding="utf-8")
        return directory

    def install(self, entry: Entry, built: Path) -> None:
        """Turn a directory with a finished product into its entry; the caller holds the lock."""
        product_digest = digest((built / entry.product).read_bytes())
        (built / "stamp.json").write_text(json.dumps(_stamp(entry, product_digest), indent=2), encoding="utf-8")
        subdirectory(self.root, "libraries", entry.key[:2])
        self._replace(self._place(entry), built)

    def move(self, entry: Entry, to: Entry, held: Entry) -> None:
        """Make of an entry another one with the same product; the caller holds the lock of a third, `held`."""
        directory = Path(tempfile.mkdtemp(dir=subdirectory(self.root, "building"), prefix=f"{held.key}."))
        self._place(entry).rename(directory)
        self.install(to, directory)

    def discard(self, entry: Entry) -> None:
        """Remove an entry; the caller holds the lock."""
        shutil.rmtree(self._place(entry), ignore_errors=True)

    def keep_failure(self, entry: Entry, built: Path) -> Path:
        """Keep the directory of a build that failed for its user to look at, and return where it is now."""
        subdirectory(self.root, "failed")
        self._replace(self.failed(entry), built)
        return self.failed(entry)

    def failed(self, entry: Entry) -> Path:
        """Return where a build that failed is kept."""
        return self.root / "failed" / entry.key

    def has_failed(self, entry: Entry) -> bool:
        """Say whether a build that failed was kept."""
        return self.failed(entry).exists()

    def sweep(self) -> None:
        """Remove what killed builds have left: directories whose lock is free."""
        for leftover in subdirectory(self.root, "building").iterdir():
            with try_lock(self._lock(leftover.name.partition(".")[0])) as nobody_builds:
                if nobody_builds:
                    shutil.rmtree(leftover, ignore_errors=True)

    def _place(self, entry: Entry) -> Path:
        return self.root / "libraries" / entry.key[:2] / entry.key

    def _lock(self, key: str) -> Path:
        return subdirectory(self.root, "locks") / f"{key}.lock"

    def _replace(self, place: Path, directory: Path) -> None:
        """Rename a directory to its place; what was there goes away as a whole first, under the directory's lock."""
        if place.exists():
            grave = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f"{directory.name.partition('.')[0]}."))
            place.rename(grave / "discarded")
            shutil.rmtree(grave, ignore_errors=True)
        directory.rename(place)


def _stamp(entry: Entry, product_digest: str) -> dict[str, object]:
    return {"facts": dict(entry.facts), "sha256": product_digest}
