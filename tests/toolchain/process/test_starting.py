"""Processes that are started while another thread forks."""

from __future__ import annotations

import pytest

from opwright.toolchain.process.starting import run
from tests.suite.warm_python import run as run_python

PROGRAM = """
import os, signal, sys, threading, time, warnings
from pathlib import Path
from opwright.toolchain.process.jobs import Job, run_side_by_side
from opwright.toolchain.process.starting import run

warnings.filterwarnings("ignore", ".*use of fork.*", DeprecationWarning)  # of Python 3.12 and newer
ways = {"run": lambda: run(("true",), 60.0), "jobs": lambda: run_side_by_side([Job(("true",), Path("/"))], 60.0, int)}
over = threading.Event()

def begin_many():
    while not over.is_set():
        ways[sys.argv[1]]()

thread, children = threading.Thread(target=begin_many), []
thread.start()
for _ in range(60):
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    children.append(child)
over.set()
thread.join(20)  # not for the children's end
print(thread.is_alive())
for child in children:
    os.kill(child, signal.SIGKILL)
"""


@pytest.mark.parametrize("way", ["run", "jobs"])
def test_nobody_waits_for_children_that_were_forked_meanwhile(way: str) -> None:
    done = run_python("-c", PROGRAM, way)
    assert (done.stdout, done.stderr, done.returncode) == ("False\n", "", 0)


def test_what_it_says_is_read() -> None:
    done = run(("sh", "-c", "echo said; echo complained >&2; exit 3"), 60.0)
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "complained\n")
