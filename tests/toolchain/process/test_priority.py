"""Processes of low priority take little from others, in Linux's groups of sessions too."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opwright.toolchain.process.jobs import Job, run_side_by_side
from opwright.toolchain.process.priority import LOW, lower, lower_own

_AUTOGROUP = Path("/proc/self/autogroup")
grouping = pytest.mark.skipif(not _AUTOGROUP.exists(), reason="this kernel does not group processes by session")
_SAYS_ITS_PRIORITY = "import os; print(os.nice(0), open('/proc/self/autogroup').read())"
FORK = multiprocessing.get_context("fork")


def run_a_job(kind: str, said: Any) -> None:
    """In a process with a session of its own."""
    os.setsid()
    if kind == "low":
        lower_own()
    command = sys.executable, "-IS", "-c", _SAYS_ITS_PRIORITY
    said.put(run_side_by_side([Job(command, Path.cwd())], 60.0, lambda: None)[0].transcript)


@grouping
def test_a_session_that_was_begun_before() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as process:
        lower(process.pid)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == LOW
        assert Path(f"/proc/{process.pid}/autogroup").read_text().endswith(f"nice {LOW}\n")
        process.communicate(b"\n")


@grouping
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.parametrize(("kind", "nice"), [("low", LOW), ("usual", os.nice(0))])
def test_compilers_have_the_priority_of_who_starts_them(kind: str, nice: int) -> None:
    said = FORK.SimpleQueue()
    process = FORK.Process(target=run_a_job, args=(kind, said))
    process.start()
    process.join(60.0)
    assert process.exitcode == 0
    own, group = said.get().strip().split("\n")[0].split(" ", 1)
    assert int(own) == nice
    assert group.endswith(f"nice {max(nice, 0)}")


def test_a_session_that_is_over() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    process.wait()
    lower(process.pid)
