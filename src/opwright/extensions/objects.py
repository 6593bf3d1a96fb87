"""Objects in the cache, addressed by the content of their sources and headers; compiled if missing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from opwright.errors import BuildFailed
from opwright.extensions.compilation import Compilation, Product, product
from opwright.extensions.progress import Progress
from opwright.toolchain.headers.dependencies import marks, namesakes
from opwright.toolchain.headers.including import ATTEMPTS, Including, never_settled
from opwright.toolchain.process.jobs import Job
from opwright.toolchain.storage.cache import LibraryCache
from opwright.toolchain.storage.records import RecordStore, canonical_json, digest


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of one build.

    Attributes:
        cache: Stores the objects.
        records: Stores the names of their headers.
        installed: Folders whose headers change only when something is installed.
        directories: Where compilers look for headers before those.
        prelude: The key of the precompiled header that C++ sources use; empty without one. A compiler does not list
            the headers inside it.
    """

    cache: LibraryCache
    records: RecordStore
    installed: tuple[Path, ...]
    directories: tuple[Path, ...]
    prelude: str = ""

    def known(self, compilation: Compilation) -> Product | None:
        """Return the object of a compilation, built or not; None if the headers of its source are unknown."""
        return self._including(compilation).known()

    def at_hand(self, compilation: Compilation) -> Product | None:
        """Return the object of a compilation if it is in the cache."""
        found = self.known(compilation)
        return found if found is not None and self.cache.holds(found) else None

    def compile(
        self, compilations: Sequence[Compilation], prelude: Sequence[str], progress: Progress
    ) -> tuple[Product, ...]:
        """Return the objects of compilations, compiling what is missing; the caller holds their locks.

        Args:
            compilations: What to compile.
            prelude: Flags that use a precompiled header, for C++ sources.
            progress: Runs the compilers and reports progress.

        Raises:
            BuildFailed: A compiler fails, or a header keeps changing.
        """
        done = {each.key: found for each in compilations if (found := self.at_hand(each)) is not None}
        including = {each.key: self._including(each) for each in compilations}
        for _ in range(ATTEMPTS):
            missing = [each for each in compilations if each.key not in done]
            begun_ns = time.time_ns()
            for each, directory in self._compiled(missing, prelude, progress):
                made = including[each.key].settled(directory, begun_ns)
                if made is not None:
                    self.cache.install(made, directory)
                    done[each.key] = made
        for each in compilations:
            if each.key not in done:
                raise never_settled(str(each.source.path))
        return tuple(done[each.key] for each in compilations)

    def _compiled(
        self, missing: Sequence[Compilation], prelude: Sequence[str], progress: Progress
    ) -> Iterator[tuple[Compilation, Path]]:
        """Run the compilers, yield the directories of those that succeed, and raise the first failure."""
        jobs = [(each, self._job(each, prelude)) for each in missing]
        failure: BuildFailed | None = None
        for each, job, complaint in progress.run(jobs, self.cache):
            if complaint is None:
                yield each, job.directory
            else:
                failure = failure or complaint
        if failure is not None:
            raise failure

    def _job(self, compilation: Compilation, prelude: Sequence[str]) -> Job:
        taken = () if compilation.is_cuda else prelude
        return Job((*compilation.command, *taken, *compilation.arguments), self.cache.begin(compilation))

    def _including(self, compilation: Compilation) -> Including[Product]:
        return Including(self.records, "headers", compilation.key, partial(self._object, compilation))

    def _object(self, compilation: Compilation, headers: Sequence[str]) -> Product | None:
        found = marks(headers, self.installed)
        if found is None:
            return None
        facts = {
            "compilation": dict(compilation.facts),
            "prelude": "" if compilation.is_cuda else self.prelude,
            "headers": found.own,
            "installed": digest(canonical_json(found.installed)),
            "namesakes": namesakes(found, self.directories, self.installed),
        }
        return product(compilation.product, facts)
