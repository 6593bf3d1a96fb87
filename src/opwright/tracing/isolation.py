"""Tracing apart from what the caller's thread has switched on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import torch

Result = TypeVar("Result")


def in_fresh_thread(work: Callable[[], Result]) -> Result:
    """Do work on a new thread and return its result, or raise what it raises.

    Gradient mode, inference mode, saved-tensor hooks and profilers belong to a thread; a trace that ran under the
    caller's would show them fake tensors. Anomaly mode belongs to the process, and would look for NaN in fake tensors:
    it is off meanwhile.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    anomalies = torch.is_anomaly_enabled()
    if anomalies:
        torch.set_anomaly_enabled(False, torch.is_anomaly_check_nan_enabled())
    try:
        thread = threading.Thread(target=run, name="opwright trace")
        thread.start()
        thread.join()
    finally:
        if anomalies:
            torch.set_anomaly_enabled(True, torch.is_anomaly_check_nan_enabled())
    if errors:
        raise errors[0]
    return results[0]
