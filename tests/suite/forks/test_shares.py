"""Each test is taken once, whatever the workers do in turns."""

from __future__ import annotations

import random

import pytest

from tests.suite.forks.shares import Shares


@pytest.mark.parametrize("tests", [0, 1, 2, 3, 10, 97])
@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_each_is_taken_once(tests: int, workers: int, seed: int) -> None:
    shares, draw = Shares(tests, workers), random.Random(seed)
    running = {worker: shares.of(worker) for worker in range(workers)}
    weights = {worker: draw.choice([1, 1, 20]) for worker in running}  # some are much quicker
    taken: list[int] = []
    while running:
        (worker,) = draw.choices(list(running), [weights[worker] for worker in running])
        if (test := next(running[worker], None)) is None:
            del running[worker]
        else:
            taken.append(test)
    assert sorted(taken) == list(range(tests))


def test_those_of_a_worker_follow_one_another() -> None:
    shares = Shares(12, 3)
    second = shares.of(1)
    assert [next(second) for _ in range(4)] == [4, 5, 6, 7]
    assert next(second) in (2, 10), "half of a share that is whole"


def test_a_worker_goes_on_where_one_that_died_was() -> None:
    shares = Shares(6, 1)
    assert [next(shares.of(0)) for _ in range(6)] == list(range(6))
