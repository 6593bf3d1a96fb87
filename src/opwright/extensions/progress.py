"""Run the compilers of one build: their number, progress messages, and failures."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from opwright.errors import BuildFailed
from opwright.extensions.compilation import Compilation, Product
from opwright.extensions.memory import jobs_at_once
from opwright.settings import Settings
from opwright.toolchain.diagnostics import diagnose
from opwright.toolchain.process.jobs import Job, Outcome, run_side_by_side
from opwright.toolchain.process.notice import Notice
from opwright.toolchain.storage.cache import LibraryCache

# A large template takes many minutes for several CUDA architectures.
PATIENCE_S = 3600.0
# The file, in the folder of a failed build, with the command and its output.
TRANSCRIPT = "transcript.txt"

Step = TypeVar("Step", Compilation, Product)


@dataclass(frozen=True, slots=True)
class Progress:
    """Runs the compilers of one build, and reports progress to its user.

    Attributes:
        title: The name of the build.
        settings: How many compilers may run, and whether to print notices at a terminal.
        verbose: Whether every command, and all that compilers print, goes to stderr.
        notice: The one line of a build that is not verbose.
    """

    title: str
    settings: Settings
    verbose: bool
    notice: Notice

    def wait(self, pid: str) -> None:
        """Report that another process builds the same."""
        self.notice.tick(f"waiting for process {pid} to build {self.title}")

    def say(self, text: str) -> None:
        """Print a line if the build is verbose."""
        if self.verbose:
            print(f"opwright: {text}", file=sys.stderr, flush=True)

    def run(
        self, jobs: Sequence[tuple[Step, Job]], cache: LibraryCache
    ) -> Iterator[tuple[Step, Job, BuildFailed | None]]:
        """Run a job for each entry, and yield its failure, if any; the folder of a failure is kept."""
        for _, job in jobs:
            self.say(shlex.join(job.command))
        need = max((entry.memory_bytes for entry, _ in jobs), default=1)
        outcomes = run_side_by_side([job for _, job in jobs], PATIENCE_S, self._tick, jobs_at_once(self.settings, need))
        for (entry, job), outcome in zip(jobs, outcomes, strict=True):
            if self.verbose and outcome.transcript:
                print(outcome.transcript, file=sys.stderr, flush=True)
            if outcome.status == 0:
                yield entry, job, None
            else:
                (job.directory / TRANSCRIPT).write_text(f"{shlex.join(job.command)}\n{outcome.transcript}", "utf-8")
                kept = cache.keep_failure(entry, job.directory) / TRANSCRIPT
                yield entry, job, self._failure(outcome, kept)

    def _tick(self) -> None:
        self.notice.tick(f"building {self.title}")

    def _failure(self, outcome: Outcome, transcript: Path) -> BuildFailed:
        where = f"the command and its output are in {transcript}; verbose=True shows them"
        if outcome.status is None:
            return BuildFailed(f"building {self.title} took more than {PATIENCE_S:g} s and was stopped", hint=where)
        found = diagnose(outcome.transcript)
        more = f" (and {found.more} more)" if found.more else ""
        hint = f"{found.hint}; {where}" if found.hint else where
        return BuildFailed(f"{found.message}{more}, building {self.title}", place=found.place, hint=hint)
