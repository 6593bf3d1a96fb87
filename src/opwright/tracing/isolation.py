"""Tracing apart from what the caller's thread has switched on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def in_fresh_thread(work: Callable[[], Result]) -> Result:
    """Do work on a new thread and return its result, or raise what it raises.

    Gradient mode, inference mode, saved-tensor hooks and profilers belong to a thread; a trace that ran under the
    caller's would show them fake tensors.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="opwright trace")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
