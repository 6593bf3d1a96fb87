"""Time on a GPU: between events on its stream, with nothing of the operands left in its caches."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import torch

from opwright.benchmark.stopwatch import Thunk

# Many times any level-2 cache, so that writing it (200 µs at 5 TB/s) takes longer than launching what is timed.
_FLUSHED_BYTES = 1 << 30
_MOST_UNDER_WAY = 100


class GpuClock:
    """Measures what a thunk does on the current stream of a GPU; see `stopwatch.Measure`.

    Before each run a large tensor is written, which throws everything else out of the caches and keeps the GPU busy
    for longer than the processor takes to launch: what is timed is the work, not the launch.

    Args:
        device: Which GPU.
    """

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        self._flush = torch.empty(_FLUSHED_BYTES, dtype=torch.int8, device=self._device)

    def __call__(self, thunk: Thunk, count: int) -> float:
        """Run a thunk `count` times, at most a hundred; return nanoseconds of one run, the mean."""
        events = [(self._event(), self._event()) for _ in repeat(None, min(count, _MOST_UNDER_WAY))]
        for start, end in events:
            self._flush.zero_()
            start.record()
            thunk()
            end.record()
        torch.cuda.synchronize(self._device)
        return sum(float(start.elapsed_time(end)) for start, end in events) / len(events) * 1e6

    def _event(self) -> Any:
        return torch.cuda.Event(enable_timing=True)


def copy_bandwidth(device: str, bytes_copied: int = 1 << 30) -> float:
    """Measure what a GPU copies, in bytes a second, read and written counted both.

    Args:
        device: Which GPU.
        bytes_copied: How large the copy is.
    """
    source = torch.empty(bytes_copied, dtype=torch.int8, device=device)
    target = torch.empty_like(source)
    clock = GpuClock(device)
    clock(lambda: target.copy_(source), 3)
    best_ns = min(clock(lambda: target.copy_(source), 1) for _ in range(10))
    return 2 * bytes_copied / (best_ns * 1e-9)
