"""Stopwatch: time several ways to do one thing, in turns, so that what disturbs the machine disturbs them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from math import ceil
from statistics import quantiles

Thunk = Callable[[], object]
Measure = Callable[[Thunk, int], float]
"""Runs a thunk a number of times and returns nanoseconds of one run, the mean."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure.

    Attributes:
        slice_ns: How long one measurement takes at least; a fast thunk is repeated within it.
        fewest_rounds: Measurements of each thunk, at least.
        most_rounds: Measurements of each thunk, at most.
        steady_spread: Stop before `most_rounds` when the middle half of all measurements lies within this, relatively.
    """

    slice_ns: int = 2_000_000
    fewest_rounds: int = 15
    most_rounds: int = 31
    steady_spread: float = 0.05

    def __post_init__(self) -> None:
        if not 2 <= self.fewest_rounds <= self.most_rounds:
            raise ValueError("a plan has at least two rounds, and no fewer at most than at least")


@dataclass(frozen=True, slots=True)
class Timing:
    """Microseconds of one call: the median over the rounds, and the quartiles beside it."""

    median_us: float
    low_us: float
    high_us: float
    rounds: int

    @property
    def spread(self) -> float:
        """The distance of the quartiles relative to the median."""
        return (self.high_us - self.low_us) / self.median_us if self.median_us else 0.0


def interleave(
    thunks: Mapping[str, Thunk],
    *,
    plan: Plan | None = None,
    finish: Callable[[], object] = lambda: None,
    clock: Callable[[], int] = time.perf_counter_ns,
    measure: Measure | None = None,
) -> dict[str, Timing]:
    """Time thunks: every round measures each of them once, beginning with another one each time.

    Args:
        thunks: What to time, by name.
        plan: How long to measure.
        finish: Waits for work that a thunk started but did not wait for; called once in each measurement.
        clock: Tells nanoseconds.
        measure: How a thunk is measured, in place of `finish` and `clock`.

    Returns:
        The timing of each thunk, by name.
    """
    plan = plan or Plan()
    measure = measure or partial(_measure, finish=finish, clock=clock)
    names = list(thunks)
    timings: dict[str, Timing] = {}
    with _undisturbed():
        counts = {name: _repetitions(thunks[name], plan, measure) for name in names}
        measured: dict[str, list[float]] = {name: [] for name in names}
        for done in range(plan.most_rounds):
            first = done % max(len(names), 1)
            for name in names[first:] + names[:first]:
                measured[name].append(measure(thunks[name], counts[name]) / 1000)
            if done + 1 < max(plan.fewest_rounds, 2):
                continue
            timings = {name: _timing(values) for name, values in measured.items()}
            if all(timing.spread <= plan.steady_spread for timing in timings.values()):
                break
    return timings


def _repetitions(thunk: Thunk, plan: Plan, measure: Measure) -> int:
    """Warm up, and find how often the thunk fits into a slice."""
    count = 1
    while (elapsed := measure(thunk, count) * count) < plan.slice_ns:
        wanted = ceil(count * plan.slice_ns / max(elapsed, 1))
        count = max(2 * count, min(10 * count, wanted))
    return count


def _measure(thunk: Thunk, count: int, finish: Callable[[], object], clock: Callable[[], int]) -> float:
    """Return nanoseconds of one call, the mean over `count` calls."""
    start = clock()
    for _ in repeat(None, count):
        thunk()
    finish()
    return (clock() - start) / count


def _timing(values_us: list[float]) -> Timing:
    low, median, high = quantiles(values_us, n=4, method="inclusive")
    return Timing(median, low, high, len(values_us))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep the garbage collector out of the measurements."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
