"""Several processes, a cold cache, the same sources; one is killed. They are forked, since importing torch is slow."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import opwright
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.source import Source
from tests.extensions.conftest import WriteSource, in_the_making, returning, value_of
from tests.suite.nights import mostly_at_night
from tests.toolchain.conftest import WriteScript

FORK = multiprocessing.get_context("fork")
PATIENCE_S = 120.0

Task = Callable[[Settings], list[Path]]

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


@pytest.fixture
def tasks(write: WriteSource) -> dict[str, Task]:
    """What every process builds: two sources by `load`, or two kernels as operators do."""
    files = [write(f"{name}.cpp", returning(7, name)) for name in "fg"]
    kernels = [
        Source(name, f'extern "C" __attribute__((visibility("default"))) int {name}() {{ return 7; }}') for name in "fg"
    ]

    def load(settings: Settings) -> list[Path]:
        return [Path(str(opwright.load("both", files, is_python_module=False, settings=settings)))]

    return {"load": load, "build": lambda settings: list(build(kernels, settings))}


def holder(settings: Settings) -> int | None:
    """The process that has taken a lock."""
    pids = [lock.read_text() for lock in (settings.cache_directory / "locks").glob("*.lock")]
    return next((int(pid) for pid in pids if pid), None)


def wait_for_a_compiler(log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not (log.exists() and "f.cpp" in log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("count", [4, pytest.param(32, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("victim", mostly_at_night(["the one that builds", "any"], by_day=1))
@pytest.mark.parametrize("task", mostly_at_night(["load", "build"], by_day=1))
def test_all_but_the_killed_one_get_the_same(
    task: str, victim: str, count: int, tasks: dict[str, Task], settings: Settings, write_script: WriteScript
) -> None:
    slow = write_script('case "$*" in *f.cpp*) sleep 0.3;; esac', name="slow")
    settings = replace(settings, compiler=str(slow.path))
    results, barrier = FORK.SimpleQueue(), FORK.Barrier(count)

    def work() -> None:
        barrier.wait(PATIENCE_S)
        results.put([str(path) for path in tasks[task](settings)])

    processes = [FORK.Process(target=work) for _ in range(count)]
    for process in processes:
        process.start()
    wait_for_a_compiler(slow.log)
    pids = {process.pid: process for process in processes}
    killed = pids[holder(settings)] if victim != "any" else random.Random(count).choice(processes)
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    for process in processes:
        process.join(PATIENCE_S)

    assert [process.exitcode for process in processes if process is not killed] == [0] * (count - 1)
    ((library, *_),) = {tuple(results.get()) for _ in range(count - 1)}
    assert value_of(library) == 7
    assert in_the_making(settings) == []
