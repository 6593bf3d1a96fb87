"""A type that ends the process, or does not answer, does so in another one, and the rest is still tried."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from opwright.tensors import coverage
from opwright.tensors.covering.apart import each_apart
from tests.tensors.planted import sample, with_fault


def _killed(go: Any, args: Any, kwargs: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_ends_the_process_fails() -> None:
    cls = with_fault(torch.exp, _killed)
    report = coverage(cls, [sample(cls)], metadata=("owner",), only=["cos", "exp", "sin"], isolate=True)
    by_name = {entry.name: entry for entry in report.entries}
    assert by_name["torch.exp"].how == "fails"
    assert by_name["torch.exp"].detail == "it ends the process: SIGKILL"
    assert {entry.name for entry in report.failing} == {"torch.exp"}
    assert {by_name[name].how for name in ("torch.cos", "torch.sin", "torch.Tensor.exp")} == {"handled"}


def test_a_report_is_the_same_in_another_process() -> None:
    def owned(**how: Any) -> Any:
        cls = with_fault(torch.exp, lambda go, args, kwargs: go(*args) * 1.01)
        return coverage(cls, [sample(cls)], metadata=("owner",), only=["exp", "add"], **how).to_dict()

    assert owned(isolate=True) == owned()


def _work(item: int, begin: Callable[[str], None], ended: Mapping[str, str]) -> Any:
    for step in ("first", "second"):
        if step not in ended:
            begin(step)
            if (item, step) == (2, "first"):
                time.sleep(60)
            if (item, step) == (2, "second"):
                os._exit(3)
    return [item, dict(ended)]


def test_steps_that_end_or_do_not_answer_are_left_out() -> None:
    assert list(each_apart(_work, [1, 2, 3], patience_s=0.3)) == [
        [1, {}],
        [2, {"first": "no answer", "second": "exit code 3"}],
        [3, {}],
    ]


def test_what_work_raises_is_raised() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(each_apart(lambda item, begin, ended: 1 // item, [1, 0]))


def test_an_end_outside_of_steps_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="was ended by exit code 4"):
        list(each_apart(lambda item, begin, ended: os._exit(4), [1]))
