"""Run compilers in parallel."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from opwright.errors import CompilerMissing
from opwright.toolchain.process.cores import available_cores
from opwright.toolchain.process.priority import pass_on
from opwright.toolchain.process.starting import undisturbed

_POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class Job:
    """A command and the directory to run it in."""

    command: tuple[str, ...]
    directory: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended.

    Attributes:
        status: Its exit status; None if it was stopped for taking too long.
        transcript: What it printed.
    """

    status: int | None
    transcript: str


class _Process(subprocess.Popen[bytes]):
    """A process that is known before it begins: an interrupt while it does leaves none behind."""

    pid = 0
    returncode = None

    def __init__(self) -> None:
        pass

    def begin(self, job: Job, transcript: IO[bytes]) -> None:
        """Start it in a session of its own, so that all that it starts in turn can be killed with it.

        Forks and interrupts wait meanwhile (process/starting.py).
        """
        with undisturbed():
            super().__init__(
                job.command,
                cwd=job.directory,
                stdin=subprocess.DEVNULL,
                stdout=transcript,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        pass_on(self.pid)


@dataclass(frozen=True, slots=True)
class _Running:
    process: _Process
    transcript: IO[bytes]
    deadline: float


def run_side_by_side(
    jobs: Sequence[Job], timeout_s: float, on_wait: Callable[[], None], at_once: int | None = None
) -> tuple[Outcome, ...]:
    """Run jobs, some at a time, and return how they ended, in their order.

    No job outlives this call: when it is interrupted, those that still run are killed.

    Args:
        jobs: What to run.
        timeout_s: How long each may take.
        on_wait: Called again and again while jobs run.
        at_once: How many may run at a time; None for one per core.
    """
    limit = at_once or available_cores()
    waiting = list(range(len(jobs)))
    running: dict[int, _Running] = {}
    outcomes: dict[int, Outcome] = {}
    try:
        while waiting or running:
            while waiting and len(running) < limit:
                index = waiting.pop(0)
                transcript = tempfile.TemporaryFile()  # noqa: SIM115  (closed by _end)
                running[index] = _Running(_Process(), transcript, time.monotonic() + timeout_s)
                _start(running[index], jobs[index])
            time.sleep(_POLL_S)
            for index in [index for index, run in running.items() if _is_over(run)]:
                outcomes[index] = _end(running.pop(index))
            on_wait()
    finally:
        for run in running.values():
            _end(run)
    return tuple(outcomes[index] for index in range(len(jobs)))


def _start(run: _Running, job: Job) -> None:
    try:
        run.process.begin(job, run.transcript)
    except OSError as error:
        raise CompilerMissing(f"{job.command[0]} cannot run: {error.strerror}") from error


def _is_over(run: _Running) -> bool:
    return run.process.poll() is not None or time.monotonic() > run.deadline


def _end(run: _Running) -> Outcome:
    """Collect a job that is over; kill one that is not."""
    status = run.process.poll() if run.process.pid else None
    if run.process.pid and status is None:
        with contextlib.suppress(ProcessLookupError):  # it may not have a session yet
            os.killpg(run.process.pid, signal.SIGKILL)
        run.process.kill()
        run.process.wait()
    with run.transcript as transcript:
        transcript.seek(0)
        return Outcome(status, transcript.read().decode(errors="replace"))
