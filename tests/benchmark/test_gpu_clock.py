"""The clock of a GPU, with events that tell the time of a queue that is not there."""

from __future__ import annotations

import pytest
import torch

from opwright.benchmark import gpu_clock
from opwright.benchmark.gpu_clock import GpuClock, copy_bandwidth


class Queue:
    """Work in order; the time in milliseconds goes on with it."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.order: list[str] = []

    def work(self, name: str, takes_ms: float) -> None:
        self.order.append(name)
        self.now_ms += takes_ms


class Event:
    queue: Queue

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at_ms = self.queue.now_ms

    def elapsed_time(self, end: Event) -> float:
        return end.at_ms - self.at_ms


class Memory:
    """A large tensor, of which only writing takes time."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def zero_(self) -> None:
        self._queue.work("flush", 0.2)

    def copy_(self, _: Memory) -> None:
        self._queue.work("copy", 0.5)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    queue = Queue()
    Event.queue = queue
    monkeypatch.setattr(gpu_clock.torch.cuda, "Event", Event)
    monkeypatch.setattr(gpu_clock.torch.cuda, "synchronize", lambda device: queue.work("synchronize", 5.0))
    monkeypatch.setattr(gpu_clock.torch, "empty", lambda *_, **__: Memory(queue))
    monkeypatch.setattr(gpu_clock.torch, "empty_like", lambda _: Memory(queue))
    return queue


def test_only_the_work_is_timed_and_the_caches_are_flushed_before_it(queue: Queue) -> None:
    clock = GpuClock("cuda:0")

    assert clock(lambda: queue.work("kernel", 0.03), 3) == pytest.approx(30_000)
    assert queue.order == ["flush", "kernel"] * 3 + ["synchronize"]


def test_few_are_under_way_at_once(queue: Queue) -> None:
    GpuClock("cuda:0")(lambda: queue.work("kernel", 0.03), 100_000)

    assert queue.order.count("kernel") == 100


def test_a_copy_reads_and_writes(queue: Queue) -> None:
    assert copy_bandwidth("cuda:0", 1 << 20) == pytest.approx(2 * (1 << 20) / 0.5e-3)
    assert queue.order.count("copy") == 13


def test_the_device_is_kept() -> None:
    with pytest.raises((RuntimeError, AssertionError)):
        GpuClock("cuda:999" if torch.cuda.is_available() else "cuda:0")
