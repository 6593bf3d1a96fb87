"""Processes killed at any moment, or at a step of a build: the others on their cache are right, and so is the next."""

from __future__ import annotations

import os
import random
import select
import signal
import time
import traceback
from collections import Counter
from pathlib import Path
from types import CodeType
from typing import NoReturn

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.settings import Settings
from tests.faults.injection import Fault, faults, name_of, sample, steps_of, struck_by
from tests.keeping_compiler import keeping_compiler
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


def child(settings: Settings, fault: Fault | None = None) -> int:
    """A process of its own that checks; gives its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        with struck_by(fault):
            os._exit(0 if check(settings) == "cpp" else 2)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def ends_of_a_crowd(processes: int, settings: Settings, chooser: random.Random) -> list[int]:
    """How processes ended that check at the same time, where up to half of them were killed; Linux's exit codes."""
    running, ended = {child(settings) for _ in range(processes)}, []
    deadline = time.monotonic() + _LONGEST_S
    while running:
        assert time.monotonic() < deadline, f"{len(running)} processes hang"
        time.sleep(chooser.uniform(0.05, 0.4))
        if ended.count(-signal.SIGKILL) < processes // 2:
            os.kill(chooser.choice(sorted(running)), signal.SIGKILL)  # one that has ended by itself is not struck
        for pid in list(running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                running.discard(pid)
                ended.append(os.waitstatus_to_exitcode(status))
    return ended


@pytest.mark.parametrize("processes", [4, pytest.param(32, marks=pytest.mark.nightly)])
def test_processes_that_are_killed_leave_the_others_and_the_next_one_right(processes, tmp_path):
    chooser = random.Random(processes)
    torch.set_num_threads(1)
    struck = 0
    for attempt in range(5):  # on a busy machine, all may have ended before one is killed
        settings = Settings(tmp_path / f"cache-{attempt}", quick_compiler(OPTIMIZING_NOTHING), tape="off")
        ended = ends_of_a_crowd(processes, settings, chooser)
        assert set(ended) <= {0, -signal.SIGKILL}, ended
        assert check(settings) == "cpp"
        struck = ended.count(-signal.SIGKILL)
        if struck:
            break
    assert struck, "all had ended before they were killed"
    print(f"{struck} of {processes} processes killed at work")


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it lives")


def steps_of_a_build(folder: Path, compiler: str) -> Counter[CodeType]:
    first, second = (Settings(folder / name, compiler, tape="off") for name in ("first", "second"))
    check(first)  # what is done once in a process, and not again in its children
    steps = steps_of(lambda: check(second))
    return Counter(
        {step: calls for step, calls in steps.items() if name_of(step).startswith(("toolchain/", "binding/"))}
    )


def status_of(pid: int) -> int | None:
    """How a process ended; None if it does not in time."""
    process = os.pidfd_open(pid)
    try:
        if not select.select([process], [], [], _LONGEST_S)[0]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
    finally:
        os.close(process)
    return os.waitpid(pid, 0)[1]


@pytest.mark.parametrize("count", [3, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_process_that_is_killed_at_a_step_leaves_the_next_one_right(count, tmp_path):
    torch.set_num_threads(1)
    compiler = keeping_compiler(OPTIMIZING_NOTHING)
    steps = steps_of_a_build(tmp_path, compiler)
    chosen, found = sample(list(faults(steps, each=2, seed=6)), count, seed=8), []
    for number, fault in enumerate(chosen):
        settings = Settings(tmp_path / str(number), compiler, tape="off")
        killed = status_of(child(settings, Fault(fault.step, fault.call, die)))
        after = status_of(child(settings))
        if killed != signal.SIGKILL or after != 0:
            found.append(f"call {fault.call} of {name_of(fault.step)}: ended by {killed}, the next one by {after}")
    assert not found, f"{len(found)} problems after {len(chosen)} processes:\n" + "\n".join(found)
    print(f"{len(chosen)} processes killed in {len(steps)} steps")
