"""`--forks N`: collect the tests once, then run them in N processes that are forked from the one that collected.

A worker that imports and collects for itself takes half a minute of processor time. A fork has all of it at once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from multiprocessing.connection import wait

import pytest
import torch

from tests.suite.forks.shares import Shares
from tests.suite.forks.worker import Worker
from tests.suite.frozen import freeze_what_is_new

_WITHOUT_KERNELS = ("tests/architecture/", "tests/test_frame.py")


class Forks:
    """A plugin that runs the collected tests in workers.

    Args:
        workers: How many run at once.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._threads = torch.get_num_threads()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Compute by one thread while tests are collected: forks would wait for threads that are not forked."""
        torch.set_num_threads(1)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests; one whose worker dies fails, and another worker goes on with the others."""
        if session.testsfailed or session.config.option.collectonly or not session.items:
            return None  # pytest's own loop says what there is to say
        # These keep a core busy while the other one still builds the hot path (hot_path_ahead.py).
        session.items.sort(key=lambda item: not item.nodeid.startswith(_WITHOUT_KERNELS))
        freeze_what_is_new()
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all workers
        shares = Shares(len(session.items), self._workers)
        workers = [Worker(number, session, shares, self._threads) for number in range(self._workers)]
        try:
            for ended in _that_end(workers):
                if ended.has_failed():
                    workers.append(Worker(ended.number, session, shares, self._threads, ended.following))
        finally:
            for worker in workers:
                worker.kill()
        return True


def _that_end(workers: list[Worker]) -> Iterator[Worker]:
    """Pass on what workers report, and take those that end out of the list, until none is left."""
    while workers:
        ready = wait([worker.reports for worker in workers])
        for worker in [worker for worker in workers if worker.reports in ready]:
            if not worker.pass_on_report():
                workers.remove(worker)
                yield worker
