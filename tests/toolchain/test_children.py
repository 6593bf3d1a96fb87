import os
import signal
import subprocess
import time

import pytest

from opwright.errors import SamplesMissing
from opwright.toolchain.process.children import ChildFailed, in_children
from tests.suite.warm_python import start


def quiet(what, done, total):
    pass


def test_results_come_in_order_and_progress_adds_up():
    told = []

    def work(number, tell):
        tell(f"step of {number}", number, 10)
        return [number] * 100_000

    found = in_children(work, 3, lambda *step: told.append(step))
    assert found == [[0] * 100_000, [1] * 100_000, [2] * 100_000]
    assert len(told) == 3
    assert max(total for _, _, total in told) == 30
    assert {what for what, _, _ in told} == {"step of 0", "step of 1", "step of 2"}
    assert max(done for _, done, _ in told) == 3


def test_work_is_done_in_processes_of_its_own():
    assert len({os.getpid(), *in_children(lambda *_: os.getpid(), 2, quiet)}) == 3


def test_what_a_child_raises_is_raised_with_its_hint():
    def fails(number, tell):
        if number:
            raise SamplesMissing("there are none", hint="make some")
        time.sleep(60)

    begun = time.monotonic()
    with pytest.raises(SamplesMissing) as raised:
        in_children(fails, 2, quiet)
    assert (raised.value.fact, raised.value.hint) == ("there are none", "make some")
    assert time.monotonic() - begun < 30  # the other is not waited for


def test_other_errors_are_raised_with_their_traceback():
    def fails(number, tell):
        raise KeyError(number)

    with pytest.raises(ChildFailed, match=r"in fails(?s:.*)KeyError: 0"):
        in_children(fails, 1, quiet)


def test_a_child_that_is_killed_is_told():
    with pytest.raises(ChildFailed, match="was killed"):
        in_children(lambda number, tell: os.kill(os.getpid(), signal.SIGKILL), 2, quiet)


def test_lines_on_stderr_are_shown_once(capsys):
    def work(number, tell):
        os.write(2, f"of all\nof {number}\n".encode())

    in_children(work, 2, quiet)
    assert sorted(capsys.readouterr().err.splitlines()) == ["of 0", "of 1", "of all"]


INTERRUPTED = """
import subprocess, sys, time
from opwright.toolchain.process.children import in_children
from opwright.toolchain.process.jobs import Job, run_side_by_side

def work(number, tell):
    command = ("sleep", f"{SECONDS}.{number}")
    run_side_by_side([Job(command, ".")], 600, lambda: tell("compile", 0, 1))

started = set()
def tell(*_):
    print("compiling", flush=True)
in_children(work, 2, tell)
"""


def test_an_interrupt_of_the_parent_alone_leaves_no_process():
    seconds = 100_000 + os.getpid()  # a mark to find them by
    program = start("-c", INTERRUPTED.replace("{SECONDS}", str(seconds)))
    _until(lambda: len(_sleepers(seconds)) == 2)
    os.kill(program.pid, signal.SIGINT)
    _, errors = program.communicate(60)
    assert "KeyboardInterrupt" in errors
    assert not _sleepers(seconds)
    assert _children_of(program.pid) == []


def _sleepers(seconds):
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if line.startswith(f"sleep {seconds}.")]


def _children_of(pid):
    found = subprocess.run(["ps", "-eo", "ppid"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.split() if line == str(pid)]


def _until(holds, patience_s=60):
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
