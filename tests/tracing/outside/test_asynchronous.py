"""What the garbage collector runs in the middle of a trace is none of the function's, so it waits for its end."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import opwright

SEEN: list[str] = []


def note(what: str) -> None:
    SEEN.append(what)


class Finalized:
    def __del__(self) -> None:
        note("a finalizer")


def count(phase: str, info: dict[str, int]) -> None:
    note(phase)


@pytest.fixture
def often() -> Iterator[None]:
    """Have the garbage collector run at almost every object."""
    thresholds = gc.get_threshold()
    gc.set_threshold(2, 1, 1)
    gc.callbacks.append(count)
    yield
    gc.callbacks.remove(count)
    gc.set_threshold(*thresholds)


def garbage() -> None:
    """Leave a circle behind, which only the collector finds."""
    one = Finalized()
    one.itself = one  # type: ignore[attr-defined]


def threefold_cosine(x: torch.Tensor) -> torch.Tensor:
    return x.cos() * 3


def test_callbacks_of_the_collector_keep_no_function_from_its_kernels(often: None) -> None:
    garbage()
    operator = opwright.operator(threefold_cosine, name="tests::collected")
    x = torch.randn(5, requires_grad=True)
    operator(x).sum().backward()
    assert operator.last_rung == "cpp"
    torch.testing.assert_close(x.grad, -3 * x.detach().sin())
    assert gc.isenabled()
    assert "stop" in SEEN


def test_the_collector_goes_on_when_the_last_of_several_traces_ends() -> None:
    from opwright.tracing.torch_hooks.isolation import in_fresh_thread

    first_is_in, second_is_done = threading.Event(), threading.Event()
    states: list[bool] = []

    def first() -> None:
        first_is_in.set()
        assert second_is_done.wait(20)
        states.append(gc.isenabled())

    trace = threading.Thread(target=in_fresh_thread, args=(first,))
    trace.start()
    assert first_is_in.wait(20)
    in_fresh_thread(lambda: states.append(gc.isenabled()))
    second_is_done.set()
    trace.join()
    assert states == [False, False]
    assert gc.isenabled()


@pytest.mark.parametrize("work", [lambda: None, lambda: 1 / 0], ids=["ends", "raises"])
def test_a_collector_that_is_off_stays_off(work: Callable[[], Any]) -> None:
    from opwright.tracing.torch_hooks.isolation import in_fresh_thread

    gc.disable()
    try:
        in_fresh_thread(work)
    except ZeroDivisionError:
        pass
    finally:
        is_on = gc.isenabled()
        gc.enable()
    assert not is_on
