"""Threads at the end of a process.

When Python ends, it ends threads that still run as soon as they ask for its lock. In the middle of C++, which PyTorch
returns to from each operation, that calls `std::terminate`: "terminate called without an active exception". So no
thread of ours may still be at work then. `Thread.join` is not enough: interrupted, it takes the thread for ended
(Python 3.11), so that the end of the process does not wait for it either.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_AGAIN_S = 0.2
_Result = TypeVar("_Result")


def run_in_thread(work: Callable[[], object], name: str) -> None:
    """Do work in a new thread, and wait for its end. If the wait is interrupted, stop the work, and wait for that.

    Args:
        work: What to do; it raises nothing, except when it is stopped.
        name: The name of the thread.

    Raises:
        BaseException: What interrupted the wait, such as KeyboardInterrupt, after the work has ended.
    """
    is_over = threading.Event()

    def whole() -> None:
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            is_over.set()

    thread = threading.Thread(target=whole, name=name)
    thread.start()
    try:
        is_over.wait()
    finally:
        _stop(thread, is_over)


@contextmanager
def done_meanwhile(work: Callable[[], _Result], name: str) -> Iterator[Callable[[], _Result]]:
    """Do work in a thread while the block does something else; what the block leaves of it is stopped.

    Args:
        work: What to do.
        name: The name of the thread.

    Yields:
        What waits for its end, and returns what it returned or raises what it raised.
    """
    is_over = threading.Event()
    results: list[_Result] = []
    errors: list[BaseException] = []

    def whole() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            is_over.set()

    def result() -> _Result:
        is_over.wait()
        if errors:
            raise errors[0]
        return results[0]

    thread = threading.Thread(target=whole, name=name)
    thread.start()
    try:
        yield result
    finally:
        _stop(thread, is_over)


def _stop(thread: threading.Thread, is_over: threading.Event) -> None:
    """Interrupt the work of a thread until it is over, and then raise what interrupted this, if anything did."""
    interruption: BaseException | None = None
    while not is_over.is_set():
        try:
            interrupt(thread)
            is_over.wait(_AGAIN_S)  # it may be in C, or in a part that ignores it
        except BaseException as error:
            interruption = error
    thread.join()
    if interruption is not None:
        raise interruption


def interrupt(thread: threading.Thread) -> None:
    """Have another thread raise, at its next instruction of Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt))
