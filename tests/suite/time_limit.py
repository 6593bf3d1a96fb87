"""Fail tests that take longer than a limit, or than their own limit: `@pytest.mark.seconds(60)`.

The limit applies to setup, call and teardown separately. It is longer on a busy machine, in proportion to the processes
that share a core. Building the hot path in C++, once for all tests, does not count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator

import pytest


def processes_for_each_core() -> float:
    """The average number of runnable processes for each core in the last minute; at least one."""
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


class TimeLimit:
    """A plugin that fails slow tests.

    Args:
        limit_s: The limit of a test without one of its own.
        crowd: The factor by which a busy machine lengthens limits.
    """

    def __init__(self, limit_s: float = 20.0, crowd: Callable[[], float] = processes_for_each_core) -> None:
        self._limit_s = limit_s
        self._crowd = crowd
        self._nobodys_s = 0.0

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "seconds(limit): the time limit of a long test")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        nobodys_s, self._nobodys_s = self._nobodys_s, 0.0
        report = yield
        took_s, limit_s = call.duration - nobodys_s, self._limit_of(item)
        if report.passed and took_s > limit_s and took_s > limit_s * self._crowd():
            report.outcome = "failed"
            report.longrepr = (
                f"{item.nodeid}: its {call.when} took {took_s:.1f} s; the limit is {limit_s:g} s\n"
                "hint: make it shorter, move its long part to nightly, or mark it with @pytest.mark.seconds(limit)"
            )
        return report

    def uncounted(self, work: Callable[[object], None]) -> Callable[[object], None]:
        """A method whose time does not count."""

        def counted_for_nobody(self_of_work: object) -> None:
            began = time.perf_counter()
            try:
                work(self_of_work)
            finally:
                self._nobodys_s += time.perf_counter() - began

        return counted_for_nobody

    def _limit_of(self, item: pytest.Item) -> float:
        if item.get_closest_marker("nightly"):
            return float("inf")
        marker = item.get_closest_marker("seconds")
        return float(marker.args[0]) if marker else self._limit_s
