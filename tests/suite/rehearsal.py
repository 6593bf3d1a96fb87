"""Rehearse tests marked `built_together`, a dozen at a time, then build their kernels as one file.

A rehearsal runs the tests without kernels and ignores their outcomes. As long as no file changes, it is not repeated:
the libraries are kept.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import torch
from _pytest.runner import runtestprotocol

MARK = "built_together"
AT_A_TIME = 12


class Rehearsal:
    """A plugin that rehearses a group of tests before the first of them runs.

    Args:
        notes: The folder in which it notes which tests were rehearsed; None to rehearse always.
    """

    def __init__(self, notes: Path | None = None) -> None:
        self._rehearsed: set[str] = set()
        self._notes = notes

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", f"{MARK}: kernels of such tests are built in one file")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if item.get_closest_marker(MARK) and not self._is_rehearsed(item):
            self._rehearse(self._following(item))

    def _is_rehearsed(self, item: pytest.Item) -> bool:
        note = self._note(item)
        return item.nodeid in self._rehearsed or (note is not None and note.exists())

    def _following(self, first: pytest.Item) -> Sequence[pytest.Item]:
        """A test and those that follow it in its module."""
        items = first.session.items
        later = items[items.index(first) :]
        near = (each for each in later if each.path == first.path and not self._is_rehearsed(each))
        return [each for each, _ in zip(near, range(AT_A_TIME), strict=False)]

    def _rehearse(self, items: Sequence[pytest.Item]) -> None:
        from tests.suite.built_together import build_together

        if len(items) > 1:
            others = [*items[1:], items[0]]  # passing the next test keeps the fixtures of their module alive
            pairs = zip(items, others, strict=True)
            build_together(*(partial(runtestprotocol, item, log=False, nextitem=other) for item, other in pairs))
        for item in items:
            self._rehearsed.add(item.nodeid)
            if note := self._note(item):
                note.touch()

    def _note(self, item: pytest.Item) -> Path | None:
        if self._notes is None:
            return None
        folder = self._notes / f"rehearsed-{_digest_of_files(item.config.rootpath)}"
        if not folder.exists():
            for older in self._notes.glob("rehearsed-*"):
                shutil.rmtree(older, ignore_errors=True)
            folder.mkdir(exist_ok=True)
        return folder / hashlib.sha256(item.nodeid.encode()).hexdigest()


@functools.cache
def _digest_of_files(root: Path) -> str:
    """What the tests depend on: torch, and all files of the package and of the tests."""
    digest = hashlib.sha256(torch.__version__.encode())
    for top in ("src", "tests"):
        for path in sorted((root / top).rglob("*.*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{path}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
