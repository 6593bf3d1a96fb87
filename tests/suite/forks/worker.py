"""A process that runs tests: seen from the one that forked it (`Worker`), and from within (`_run`)."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from _pytest.config import create_terminal_writer

from tests.suite.forks.shares import Shares

_FORK = multiprocessing.get_context("fork")


class Worker:
    """A worker, which begins at once.

    Attributes:
        number: Which share it runs.
        following: The test that it has taken and not begun.
        reports: Where it reports.

    Args:
        number: Which share it runs.
        session: The session that has collected the tests.
        shares: The shares of all workers.
        threads: The threads that torch uses in it.
        taken: The test that a worker had taken from the share, and not begun, before it died.
    """

    def __init__(
        self, number: int, session: pytest.Session, shares: Shares, threads: int, taken: int | None = None
    ) -> None:
        self.number, self._session = number, session
        self.following = taken
        self._running: int | None = None
        self._workerinfocache = f"worker {number}"  # pytest asks the nodes of pytest-xdist for this, and for the next
        self.gateway = SimpleNamespace(id=self._workerinfocache)
        self.reports, ours = multiprocessing.Pipe(duplex=False)
        self._process = _FORK.Process(target=_run, args=(number, session, shares, threads, taken, ours))
        self._process.start()
        ours.close()  # so that the pipe ends with the process

    def pass_on_report(self) -> bool:
        """Tell the plugins of one report; False if the worker has ended.

        Raises:
            pytest.Session.Failed: If as many tests have failed as may.
            pytest.Session.Interrupted: If a plugin has asked to stop.
        """
        try:
            (self._running, self.following), report = self.reports.recv()
        except EOFError:
            return False
        if report is not None:
            config = self._session.config
            self._tell(config.hook.pytest_report_from_serializable(config=config, data=report))
        return True

    def has_failed(self) -> bool:
        """Wait for the end of the process; unless it ends with code 0 after all tests, the one that ran has failed."""
        self._process.join()
        code = self._process.exitcode
        if code == 0 and self._running is None:
            return False
        said = f"worker {self.number} ended with exit code {code}"
        if self._running is None:
            raise RuntimeError(f"{said} while it ran no test")
        item = self._session.items[self._running]
        said = f"{said} while it ran {item.nodeid}"
        self._tell(pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call"))
        return True

    def kill(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()

    def _tell(self, report: pytest.TestReport) -> None:
        report.node = self  # type: ignore[attr-defined]  # as of pytest-xdist: tests of several files run in turns
        self._session.config.hook.pytest_runtest_logreport(report=report)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)


class _Reporting:
    """A plugin that tells which test runs, and which one follows, and passes on the reports about it."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection
        self._now: tuple[int | None, int | None] = None, None

    def begin(self, test: int | None, following: int | None) -> None:
        """Tell which test begins; None at the end."""
        self._now = test, following
        self._connection.send((self._now, None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: dict[str, Any] = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send((self._now, told))


def _run(
    number: int, session: pytest.Session, shares: Shares, threads: int, taken: int | None, connection: Connection
) -> None:
    """Run tests, in a process of their own."""
    torch.set_num_threads(threads)
    _make_own(session.config, number)
    reporting = _Reporting(session.config, connection)
    session.config.pluginmanager.register(reporting)
    left = shares.of(number) if taken is None else itertools.chain([taken], shares.of(number))
    try:
        for test, following in _with_following(left):
            item, after = session.items[test], None if following is None else session.items[following]
            reporting.begin(test, following)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        reporting.begin(None, None)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _with_following(tests: Iterator[int]) -> Iterator[tuple[int, int | None]]:
    """Each test with the one that follows, for which pytest keeps the fixtures that both use."""
    test = next(tests, None)
    while test is not None:
        following = next(tests, None)
        yield test, following
        test = following


def _make_own(config: pytest.Config, number: int) -> None:
    """Give a worker its own captured output and temporary folders, and let it print no progress."""
    plugins = config.pluginmanager
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture(in_=True)
    plugins.getplugin("terminalreporter")._tw = create_terminal_writer(config, open(os.devnull, "w"))  # noqa: SIM115
    folders = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.getbasetemp() / f"worker-{number}"
    folders._basetemp.mkdir(mode=0o700, exist_ok=True)
