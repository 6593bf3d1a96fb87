"""Numbers as text are refused while a reference is traced, on the thread of the trace, and nowhere else."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from opwright.errors import NumberNeeded
from opwright.tracing.specs import NumberSpec, TensorSpec
from opwright.tracing.trace import trace

SPECS = [TensorSpec("x", torch.float32, (4,)), NumberSpec("k", 2.5)]


def in_words(x: Tensor, k: float) -> Tensor:
    return x * len(f"{k}")


def test_torch_is_left_as_it_was() -> None:
    before = (torch.SymInt.__repr__, torch.SymFloat.__repr__)
    with pytest.raises(NumberNeeded, match="as text"):
        trace(in_words, SPECS)
    assert (torch.SymInt.__repr__, torch.SymFloat.__repr__) == before


def test_another_thread_writes_what_it_likes() -> None:
    written = []

    def reference(x: Tensor, k: float) -> Tensor:
        thread = threading.Thread(target=lambda: written.append(str(k)))
        thread.start()
        thread.join()
        return x * k

    trace(reference, SPECS)
    assert len(written) == 1


def test_each_of_many_traces_at_once_is_asked() -> None:
    before = torch.SymFloat.__repr__

    def refused(_: int) -> bool:
        try:
            trace(in_words, SPECS)
        except NumberNeeded:
            return True
        return False

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(refused, range(8)))
    assert torch.SymFloat.__repr__ == before
