"""Which tests each worker still has to run, in memory that the workers share."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator


class Shares:
    """The tests of each worker, by their numbers.

    A share holds tests that follow one another, as those often use what the one before has imported and built. A worker
    that is done takes half of what the largest share still holds, from its end.

    Args:
        tests: The number of tests.
        workers: The number of workers.
    """

    def __init__(self, tests: int, workers: int) -> None:
        bounds = [tests * worker // workers for worker in range(workers + 1)]
        self._lock = multiprocessing.Lock()
        self._next = multiprocessing.Array("q", bounds[:-1], lock=False)
        self._end = multiprocessing.Array("q", bounds[1:], lock=False)

    def of(self, worker: int) -> Iterator[int]:
        """Take a worker's tests one by one, then those of others, until none is left."""
        while (test := self._taken(worker)) is not None:
            yield test

    def _taken(self, worker: int) -> int | None:
        with self._lock:
            if not self._left(worker):
                self._take_half(worker, max(range(len(self._end)), key=self._left))
            if not self._left(worker):
                return None
            self._next[worker] += 1
            return self._next[worker] - 1

    def _take_half(self, worker: int, largest: int) -> None:
        kept = self._left(largest) // 2
        self._end[worker] = self._end[largest]
        self._next[worker] = self._end[largest] = self._next[largest] + kept

    def _left(self, worker: int) -> int:
        return self._end[worker] - self._next[worker]
