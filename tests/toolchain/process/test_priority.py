"""Processes of low priority take little from others, in Linux's groups of sessions too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opwright.toolchain.process.priority import LOW, lower

_AUTOGROUP = Path("/proc/self/autogroup")
grouping = pytest.mark.skipif(not _AUTOGROUP.exists(), reason="this kernel does not group processes by session")
_RUNS_A_JOB = """
import sys
from pathlib import Path
from opwright.toolchain.process.jobs import Job, run_side_by_side
from opwright.toolchain.process.priority import lower_own

if sys.argv[1] == "low":
    lower_own()
command = sys.executable, "-c", "import os; print(os.nice(0), open('/proc/self/autogroup').read())"
print(run_side_by_side([Job(command, Path.cwd())], 60.0, lambda: None)[0].transcript)
"""


@grouping
def test_a_session_that_was_begun_before() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as process:
        lower(process.pid)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == LOW
        assert Path(f"/proc/{process.pid}/autogroup").read_text().endswith(f"nice {LOW}\n")
        process.communicate(b"\n")


@grouping
@pytest.mark.parametrize(("kind", "nice"), [("low", LOW), ("usual", os.nice(0))])
def test_compilers_have_the_priority_of_who_starts_them(kind: str, nice: int) -> None:
    command = [sys.executable, "-c", _RUNS_A_JOB, kind]
    said = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True).stdout
    own, group = said.strip().split("\n")[0].split(" ", 1)
    assert int(own) == nice
    assert group.endswith(f"nice {max(nice, 0)}")


def test_a_session_that_is_over() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    process.wait()
    lower(process.pid)
