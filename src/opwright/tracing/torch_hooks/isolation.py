"""Tracing apart from what the caller's thread has switched on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from opwright.toolchain.forks import hold_off_forks

Result = TypeVar("Result")

_set_autograd_compiler = torch._C._dynamo.compiled_autograd.set_autograd_compiler


def in_fresh_thread(work: Callable[[], Result]) -> Result:
    """Do work on a new thread and return its result, or raise what it raises.

    Gradient mode, inference mode, saved-tensor hooks and profilers belong to a thread; a trace that ran under the
    caller's would show them fake tensors. Anomaly mode and compiled autograd belong to the process, and would look for
    NaN in fake tensors and compile their derivatives: they are off meanwhile, and other threads fork when it is over.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    caller = threading.get_ident()

    def run() -> None:
        try:
            with hold_off_forks(caller):
                results.append(work())
        except BaseException as error:
            errors.append(error)

    with hold_off_forks(), _without_anomaly_mode(), _without_compiled_autograd():
        thread = threading.Thread(target=run, name="opwright trace")
        thread.start()
        thread.join()
    if errors:
        raise errors[0]
    return results[0]


@contextmanager
def _without_anomaly_mode() -> Iterator[None]:
    if not torch.is_anomaly_enabled():
        yield
        return
    torch.set_anomaly_enabled(False, torch.is_anomaly_check_nan_enabled())
    try:
        yield
    finally:
        torch.set_anomaly_enabled(True, torch.is_anomaly_check_nan_enabled())


@contextmanager
def _without_compiled_autograd() -> Iterator[None]:
    before = _set_autograd_compiler(None, False)
    try:
        yield
    finally:
        _set_autograd_compiler(*before)
