"""Rehearse tests marked `built_together`, a dozen at a time, then build their kernels as one file.

A rehearsal runs the tests without kernels and ignores their outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
from _pytest.runner import runtestprotocol

MARK = "built_together"
AT_A_TIME = 12


class Rehearsal:
    """A plugin that rehearses a group of tests before the first of them runs."""

    def __init__(self) -> None:
        self._rehearsed: set[str] = set()

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", f"{MARK}: kernels of such tests are built in one file")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if item.get_closest_marker(MARK) and item.nodeid not in self._rehearsed:
            self._rehearse(self._following(item))

    def _following(self, first: pytest.Item) -> Sequence[pytest.Item]:
        """A test and those that follow it in its module."""
        items = first.session.items
        later = items[items.index(first) :]
        near = (each for each in later if each.path == first.path and each.nodeid not in self._rehearsed)
        return [each for each, _ in zip(near, range(AT_A_TIME), strict=False)]

    def _rehearse(self, items: Sequence[pytest.Item]) -> None:
        from tests.suite.built_together import build_together

        self._rehearsed.update(item.nodeid for item in items)
        if len(items) > 1:
            others = [*items[1:], items[0]]  # passing the next test keeps the fixtures of their module alive
            pairs = zip(items, others, strict=True)
            build_together(*(partial(runtestprotocol, item, log=False, nextitem=other) for item, other in pairs))
