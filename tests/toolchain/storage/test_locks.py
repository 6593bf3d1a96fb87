from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from opwright.errors import BuildFailed
from opwright.toolchain.storage.locks import hold, try_lock


def ignore(holder: str) -> None:
    """Wait in silence."""


def test_one_holds_at_a_time(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    with hold([lock], ignore, 1), try_lock(lock) as second:
        assert not second

    with try_lock(lock) as later:
        assert later


def test_a_waiter_learns_who_holds(tmp_path: Path) -> None:
    lock, holders, released = tmp_path / "a.lock", [], threading.Event()

    def release_then_note(holder: str) -> None:
        released.set()
        holders.append(holder)

    def hold_until_released() -> None:
        with hold([lock], ignore, 1):
            taken.set()
            released.wait(30)

    taken = threading.Event()
    thread = threading.Thread(target=hold_until_released)
    thread.start()
    taken.wait(30)
    with hold([lock], release_then_note, 30):
        thread.join(30)

    assert set(holders) == {str(os.getpid())}


def test_patience_ends(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    with (
        hold([lock], ignore, 1),
        pytest.raises(BuildFailed, match=rf"process {os.getpid()} has held .*a\.lock for more than 0\.05 s\nhint:"),
        hold([lock], ignore, 0.05),
    ):
        pytest.fail("a lock that is held was taken")


def test_opposite_orders_do_not_deadlock(tmp_path: Path) -> None:
    first, second, rounds = tmp_path / "a.lock", tmp_path / "b.lock", []

    def take(paths: list[Path]) -> None:
        for _ in range(50):
            with hold(paths, ignore, 30):
                rounds.append(paths)

    threads = [threading.Thread(target=take, args=(paths,)) for paths in ([first, second], [second, first])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(rounds) == 100


def test_a_lock_dies_with_its_process_although_a_child_has_it(tmp_path: Path) -> None:
    """A process that was forked while the lock was held does not go on holding it."""
    lock, (read_end, write_end) = tmp_path / "a.lock", os.pipe()
    with hold([lock], ignore, 1):
        child = os.fork()
        if child == 0:
            os.close(write_end)
            os.read(read_end, 1)
            os._exit(0)
    with try_lock(lock) as free:
        os.close(write_end)
        os.waitpid(child, 0)
        os.close(read_end)

    assert free


def test_a_killed_holder_lets_go_although_its_child_lives(tmp_path: Path) -> None:
    """Locks are for ever otherwise: a worker that was forked during a build may live for days."""
    lock, (read_end, write_end), (told, tell) = tmp_path / "a.lock", os.pipe(), os.pipe()
    holder = os.fork()
    if holder == 0:
        with hold([lock], ignore, 1):
            os.close(write_end)
            if os.fork() == 0:
                os.write(tell, b"x")
                os.read(read_end, 1)
                os._exit(0)
            os.read(read_end, 1)
    try:
        os.read(told, 1)
        with try_lock(lock) as early:
            pass
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        with try_lock(lock) as late:
            pass
    finally:
        for descriptor in (write_end, read_end, told, tell):
            os.close(descriptor)

    assert not early
    assert late


def test_a_child_that_leaves_the_block_lets_nothing_go(tmp_path: Path) -> None:
    """A signal handler may fork while its thread holds a lock: the parent goes on holding it."""
    lock = tmp_path / "a.lock"
    with hold([lock], ignore, 1):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            with try_lock(lock) as free:
                pass
    if child == 0:
        os._exit(0)

    assert not free
