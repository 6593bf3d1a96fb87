"""Many processes on one cache, some of which are killed at any moment: the others are right, and so is the next."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
import traceback
from pathlib import Path

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.settings import Settings
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler

_LONGEST_S = 300


def shared(x: Tensor, y: Tensor) -> Tensor:
    return torch.softmax(x * y, -1) + y


def check(settings: Settings) -> str | None:
    """Make the operator, compare it with its reference, and give the rung."""
    operator = Operator(shared, settings=settings, identity=lambda _: "shared")
    found = []
    for function in (operator, shared):
        x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
        z = function(x, torch.full((3, 4), 0.5))
        found.append([z.detach(), *torch.autograd.grad(z.square().sum(), x)])
    torch.testing.assert_close(*found)
    return operator.last_rung


def child(settings: Settings) -> int:
    """A process of its own that checks; gives its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os._exit(0 if check(settings) == "cpp" else 2)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


@pytest.mark.parametrize("processes", [6, pytest.param(32, marks=pytest.mark.nightly)])
def test_processes_that_are_killed_leave_the_others_and_the_next_one_right(processes, tmp_path):
    chooser = random.Random(processes)
    settings = Settings(tmp_path / "cache", quick_compiler(Path(tmp_path), OPTIMIZING_NOTHING), tape="off")
    torch.set_num_threads(1)
    running, ended, killed = {child(settings) for _ in range(processes)}, [], set()
    deadline = time.monotonic() + _LONGEST_S
    while running:
        assert time.monotonic() < deadline, f"{len(running)} processes hang"
        time.sleep(chooser.uniform(0.05, 0.4))
        if len(killed) < processes // 2:
            victim = chooser.choice(sorted(running))
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            killed.add(victim)
        for pid in list(running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                running.discard(pid)
                ended.append((pid, status))
    assert not [(pid, status) for pid, status in ended if pid not in killed and status]
    assert check(settings) == "cpp"
    print(f"{len(killed)} of {processes} processes killed")
