"""A fork waits for what must not be left half done; a lock of a thread that is no more is free in the child."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from opwright.errors import NoKernel
from opwright.toolchain.process import forks
from opwright.toolchain.process.forks import Lock, hold_off_forks, refuse_torn

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
LIMIT_S = 30.0


def in_child(work: Callable[[], bool]) -> bool:
    """Whether some work is done, and well, in a forked child, within a time limit."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = int(not work())
        finally:
            os._exit(status)
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


@contextmanager
def other_thread_in(work: Callable[[threading.Event], None]) -> Iterator[threading.Event]:
    """Let a thread work until an event, which is given; begins when the work calls it by setting `begun`."""
    go_on = threading.Event()
    thread = threading.Thread(target=work, args=(go_on,))
    thread.start()
    try:
        yield go_on
    finally:
        go_on.set()
        thread.join(LIMIT_S)


def takes(lock: Lock) -> bool:
    with lock, lock:
        return True


def test_a_lock_of_another_thread_is_free_in_a_child() -> None:
    lock, taken = Lock(), threading.Event()

    def keep(go_on: threading.Event) -> None:
        with lock, lock:
            taken.set()
            go_on.wait(LIMIT_S)

    with other_thread_in(keep):
        taken.wait(LIMIT_S)
        assert in_child(lambda: takes(lock))
    assert takes(lock)


def test_a_lock_of_the_thread_that_forks_is_still_its_own() -> None:
    lock = Lock()
    with lock:
        assert in_child(lambda: takes(lock))

        def leaves_it() -> bool:
            lock.__exit__()
            free: list[bool] = []
            thread = threading.Thread(target=lambda: free.append(takes(lock)))
            thread.start()
            thread.join(LIMIT_S)
            return free == [True]

        assert in_child(leaves_it)


def test_a_fork_waits_for_what_must_not_be_left_half_done() -> None:
    halves, begun = ["whole"], threading.Event()

    def change(go_on: threading.Event) -> None:
        with hold_off_forks():
            halves[0] = "half"
            begun.set()
            time.sleep(0.2)
            halves[0] = "whole"

    with other_thread_in(change):
        begun.wait(LIMIT_S)
        assert in_child(lambda: halves == ["whole"])


def test_who_is_at_it_forks_without_waiting_for_himself_or_for_who_waits_for_him() -> None:
    found: list[bool] = []
    caller = threading.get_ident()

    def work() -> None:
        with hold_off_forks(caller):
            found.append(in_child(lambda: True))

    began = time.monotonic()
    with hold_off_forks():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(LIMIT_S)
        found.append(in_child(lambda: True))
    assert found == [True, True]
    assert time.monotonic() - began < forks.PATIENCE_S / 2


def test_threads_that_never_stop_do_not_starve_a_fork() -> None:
    """New work waits for a fork that waits."""
    over = threading.Event()

    def work(go_on: threading.Event) -> None:
        while not over.is_set():
            with hold_off_forks():
                time.sleep(0.002)

    with other_thread_in(work), other_thread_in(work), other_thread_in(work):
        began = time.monotonic()
        try:
            assert all(in_child(lambda: True) for _ in range(10))
            took_s = time.monotonic() - began
        finally:
            over.set()
    assert took_s < forks.PATIENCE_S / 4


def test_what_takes_too_long_is_left_and_the_child_derives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "PATIENCE_S", 0.05)
    begun = threading.Event()

    def work(go_on: threading.Event) -> None:
        with hold_off_forks():
            begun.set()
            go_on.wait(LIMIT_S)

    def refuses() -> bool:
        with pytest.raises(NoKernel, match=r"^this process was forked while .* traced .*\nhint: fork before"):
            refuse_torn()
        return True

    with other_thread_in(work):
        begun.wait(LIMIT_S)
        assert in_child(refuses)
    refuse_torn()
