"""Threads at the end of a process.

When Python ends, it ends threads that still run as soon as they ask for its lock. In the middle of C++, which PyTorch
returns to from each operation, that calls `std::terminate`: "terminate called without an active exception". So no
thread of ours may still be at work then. `Thread.join` is not enough: interrupted, it takes the thread for ended
(Python 3.11), so that the end of the process does not wait for it either.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

_AGAIN_S = 0.2


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

    interruption: BaseException | None = None
    thread = threading.Thread(target=whole, name=name)
    thread.start()
    while not is_over.is_set():
        try:
            if interruption is None:
                is_over.wait()
            else:
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
