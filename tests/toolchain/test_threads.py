"""A thread that still runs PyTorch when the process ends aborts it: "terminate called without an active exception"."""

import os
import signal
import threading
import time

import pytest

from opwright.toolchain.process.threads import done_meanwhile, run_in_thread
from tests.suite.warm_python import run

TWICE = """
import os, signal, threading, time
import torch
from opwright.tracing.torch_hooks.isolation import in_fresh_thread

signal.signal(signal.SIGINT, signal.default_int_handler)

def work():
    threading.Thread(target=interrupt, daemon=True).start()
    x = torch.ones(4)
    while True:
        x = (x * 2).sin()

def interrupt():
    for _ in range(2):
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.5)

in_fresh_thread(work)
"""


@pytest.fixture
def interrupts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("patience_s", [0.0, 0.3])
def test_an_interrupted_wait_stops_the_thread(interrupts, patience_s):
    """Also one that does not listen at once."""
    stopped = []

    def work():
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        until = time.monotonic() + patience_s
        while True:
            try:
                time.sleep(0.001)
            except KeyboardInterrupt:
                if time.monotonic() > until:
                    stopped.append(True)
                    return

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_in_thread(work, "work")
    assert (stopped, threading.active_count()) == ([True], before)


def test_a_wait_that_is_not_interrupted_stops_nothing():
    done = []
    run_in_thread(lambda: done.append(time.sleep(0.05)), "work")
    assert done == [None]


def test_work_is_done_while_the_block_runs():
    here = threading.Event()
    with done_meanwhile(lambda: here.wait(10), "work") as result:
        here.set()
        assert result() is True


def test_what_the_work_raises_comes_with_its_result():
    with pytest.raises(ZeroDivisionError), done_meanwhile(lambda: 1 / 0, "work") as result:
        result()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_a_failed_block_leaves_is_stopped(error):
    stopped, before = [], threading.active_count()

    def work():
        try:
            while True:
                time.sleep(0.001)
        except KeyboardInterrupt:
            stopped.append(True)
            raise

    def failing_block():
        with done_meanwhile(work, "work"):
            time.sleep(0.05)
            raise error

    with pytest.raises(error):
        failing_block()
    assert (stopped, threading.active_count()) == ([True], before)


def test_interrupts_in_a_trace_do_not_abort_the_process():
    ended = run("-c", TWICE)
    assert "terminate" not in ended.stderr
    last = ended.stderr.rstrip().splitlines()[-1]
    assert last.startswith("KeyboardInterrupt")  # with a colon, where the second one comes while the process ends
    assert ended.returncode in (1, 130, -signal.SIGINT)
