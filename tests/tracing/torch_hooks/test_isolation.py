"""What outlives the threads that trace."""

from __future__ import annotations

import threading

import pytest
import torch

from opwright.tracing.torch_hooks import isolation
from opwright.tracing.torch_hooks.fake_mode import LeanFakeTensorMode

KEEP = isolation.keep_device_guard.__wrapped__


@pytest.fixture
def replaced_by(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads in which PyTorch, as if built for CUDA where there is no GPU, replaced the device guard."""
    threads: list[threading.Thread] = []
    replace = lambda: threads.append(threading.current_thread())  # noqa: E731
    monkeypatch.setattr(torch._C, "_ensureCUDADeviceGuardSet", replace, raising=False)
    monkeypatch.setattr(torch.cuda, "_is_compiled", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return threads


def test_the_device_guard_belongs_to_a_thread_that_does_not_end(replaced_by: list[threading.Thread]) -> None:
    asking = threading.Thread(target=KEEP)
    asking.start()
    asking.join()
    (thread,) = replaced_by
    assert thread.is_alive()
    assert thread.daemon
    assert thread not in (asking, threading.current_thread())


@pytest.mark.parametrize("name", ["is_available", "_is_compiled"])
def test_nothing_is_replaced_where_there_is_a_gpu_or_no_cuda(
    name: str, replaced_by: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, name, lambda: name == "is_available")
    KEEP()
    assert not replaced_by


def test_it_is_kept_before_any_mode_and_any_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    monkeypatch.setattr(isolation, "keep_device_guard", lambda: steps.append("kept"))
    isolation.in_fresh_thread(lambda: steps.append("traced"))
    assert steps == ["kept", "traced"]
    monkeypatch.setattr("opwright.tracing.torch_hooks.fake_mode.keep_device_guard", lambda: steps.append("kept"))
    with LeanFakeTensorMode():
        steps.append("entered")
    assert steps[2:] == ["kept", "entered"]
