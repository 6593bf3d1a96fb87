"""Several processes and one cache. They are forked, as importing torch once for each takes long."""

from __future__ import annotations

import logging
import multiprocessing
import os
import select
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.process import jobs
from opwright.toolchain.source import Source
from tests.toolchain.conftest import WriteScript, in_the_making, returning
from tests.toolchain.test_build import SLOW_KERNEL, value_of

FORK = multiprocessing.get_context("fork")
PATIENCE_S = 60.0

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)
    return path.read_text().strip()


@pytest.mark.parametrize("count", [6, pytest.param(16, marks=pytest.mark.nightly)])
def test_processes_make_one_library(count: int, settings: Settings, write_script: WriteScript) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    results = FORK.SimpleQueue()
    barrier = FORK.Barrier(count)

    def work() -> None:
        barrier.wait(PATIENCE_S)
        (library,) = build([returning(7)], settings)
        results.put((str(library), value_of(library)))

    processes = [FORK.Process(target=work) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_S)

    assert [process.exitcode for process in processes] == [0] * count
    (made,) = {results.get() for _ in processes}
    assert made[1] == 7
    assert script.calls("kernel.cpp") == 1
    assert in_the_making(settings) == []


def test_who_comes_between_the_parts_and_the_library_compiles_nothing_again(
    settings: Settings, write_script: WriteScript
) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    (library,) = build([returning(7)], settings)
    shutil.rmtree(library.parent)  # as before another process has linked it
    (again,) = build([returning(7)], settings)
    assert (again, value_of(again)) == (library, 7)
    assert script.calls("kernel.cpp") == 1


def test_crossing_orders_make_each_library_once(settings: Settings, write_script: WriteScript) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    sources: list[Source] = [returning(value) for value in range(3)]
    processes = [FORK.Process(target=build, args=(order, settings)) for order in (sources, sources[::-1]) * 2]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_S)

    assert [process.exitcode for process in processes] == [0] * 4
    assert script.calls("kernel.cpp") == 3


@pytest.fixture
def stuck_settings(settings: Settings, write_script: WriteScript, tmp_path: Path) -> Settings:
    """Settings whose compiler sleeps for ever, until a file `go` exists; it writes its pid to `pid`."""
    body = SLOW_KERNEL.format(f"[ -e {tmp_path}/go ] || {{ echo $$ > {tmp_path}/pid; exec sleep 600; }}")
    return replace(settings, compiler=str(write_script(body).path))


def test_a_killed_builder_blocks_nobody(stuck_settings: Settings, tmp_path: Path) -> None:
    builder = FORK.Process(target=build, args=([returning(7)], stuck_settings))
    builder.start()
    compiler_pid = int(wait_for(tmp_path / "pid"))
    try:
        assert builder.pid is not None
        os.kill(builder.pid, signal.SIGKILL)
        builder.join(PATIENCE_S)
        left_behind = in_the_making(stuck_settings)
        visible = list(stuck_settings.cache_directory.glob("libraries/*/*/kernel.so"))
        (tmp_path / "go").touch()
        (library,) = build([returning(7)], stuck_settings)
    finally:
        os.kill(compiler_pid, signal.SIGKILL)

    assert len(left_behind) == 1
    assert visible == []
    assert value_of(library) == 7
    assert in_the_making(stuck_settings) == []


def test_a_waiter_says_for_whom_and_gets_the_library(
    settings: Settings,
    write_script: WriteScript,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    started, go_on = tmp_path / "started", tmp_path / "go"
    waiting = f"echo yes > {started}; while [ ! -e {go_on} ]; do sleep 0.01; done"
    script = write_script(SLOW_KERNEL.format(waiting))
    settings = replace(settings, compiler=str(script.path))
    builder = FORK.Process(target=build, args=([returning(7)], settings))
    builder.start()
    wait_for(started)

    class Listener(logging.Handler):
        """Lets the builder go on as soon as something is said."""

        def emit(self, record: logging.LogRecord) -> None:
            go_on.touch()

    listener, log = Listener(), logging.getLogger("opwright")
    caplog.set_level(logging.INFO, logger=log.name)
    monkeypatch.setattr(log, "handlers", [*log.handlers, listener])
    (library,) = build([returning(7)], settings)
    builder.join(PATIENCE_S)

    assert [record.getMessage() for record in caplog.records] == [
        f"waiting for process {builder.pid} to build kernel …"
    ]
    assert value_of(library) == 7
    assert script.calls("kernel.cpp") == 1


def test_an_interrupted_build_stops_its_compiler(stuck_settings: Settings, tmp_path: Path) -> None:
    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            build([returning(7)], stuck_settings)

    builder = FORK.Process(target=work)
    builder.start()
    compiler = os.pidfd_open(int(wait_for(tmp_path / "pid")))  # its number may be given to another process
    try:
        assert not has_ended(compiler, within_s=0)
        assert builder.pid is not None
        os.kill(builder.pid, signal.SIGINT)
        builder.join(PATIENCE_S)
        assert builder.exitcode == 0
        assert has_ended(compiler, within_s=PATIENCE_S)
    finally:
        os.close(compiler)


def has_ended(process: int, within_s: float) -> bool:
    """Whether the process of a pidfd ends in time; nobody needs to have taken note of it."""
    return bool(select.select([process], [], [], within_s)[0])


def test_an_interrupt_while_a_compiler_begins_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt comes when the process is there and nobody has been told of it."""
    begin = jobs._Process.begin
    begun: list[int] = []

    def interrupted(process: jobs._Process, job: jobs.Job, transcript: IO[bytes]) -> None:
        begin(process, job, transcript)
        begun.append(os.pidfd_open(process.pid))
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs._Process, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jobs.run_side_by_side([jobs.Job(("sleep", "600"), tmp_path)], 60, lambda: None)
    (process,) = begun
    assert has_ended(process, within_s=0)
    os.close(process)


def test_an_interrupt_before_the_number_of_a_compiler_is_known_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    fork = subprocess._fork_exec  # type: ignore[attr-defined]

    def interrupted(*args: Any) -> int:
        begun.append(os.pidfd_open(number := fork(*args)))
        os.kill(os.getpid(), signal.SIGINT)
        return number

    monkeypatch.setattr(subprocess, "_fork_exec", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start a run that ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            jobs.run_side_by_side([jobs.Job(("sleep", "600"), tmp_path)], 60, lambda: None)
    finally:
        signal.signal(signal.SIGINT, before)
    (process,) = begun
    assert has_ended(process, within_s=0)
    os.close(process)
