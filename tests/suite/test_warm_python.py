"""A program in a forked process of a warm Python: what it sees of itself, what it writes, how it ends."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.suite.warm_python import Imported, run, start

SELF = """
import atexit, json, os, sys
print(json.dumps([sys.argv[1:], os.environ.get("GIVEN"), os.getcwd(), __name__, "torch" in sys.modules]))
atexit.register(lambda: print("at the end"))
print("wrong", file=sys.stderr)
sys.exit(3)
"""


def as_a_file(tmp_path: Path, text: str) -> tuple[str, ...]:
    (tmp_path / "program.py").write_text(text)
    return (str(tmp_path / "program.py"),)


@pytest.mark.parametrize("kind", ["-c", "-m", "file"])
def test_a_program_has_what_it_is_given(kind: str, tmp_path: Path) -> None:
    file = as_a_file(tmp_path, SELF)
    command = {"-c": ("-c", SELF), "-m": ("-m", "program"), "file": file}[kind]
    ran = run(*command, "first", "second", env={**os.environ, "GIVEN": "yes"}, cwd=tmp_path)
    line, end = ran.stdout.splitlines()
    assert json.loads(line) == [["first", "second"], "yes", str(tmp_path), "__main__", True]
    assert (end, ran.stderr, ran.returncode) == ("at the end", "wrong\n", 3)


def test_programs_know_nothing_of_one_another() -> None:
    assert run("-c", "import torch; torch.left = 1").returncode == 0
    assert run("-c", "import torch; assert not hasattr(torch, 'left')").returncode == 0


def test_a_program_that_is_alone_has_torch_imported_and_not_opwright() -> None:
    text = "import sys; print([name in sys.modules for name in ('torch', 'opwright')])"
    kinds: tuple[Imported, ...] = ("torch", "opwright", "derivations")
    assert [run("-c", text, having=having).stdout for having in kinds] == ["[True, False]\n", *["[True, True]\n"] * 2]


def test_an_exception_is_told() -> None:
    ran = run("-c", "raise ValueError('so')")
    assert ran.returncode == 1
    assert ran.stderr.endswith("ValueError: so\n")


def test_interrupts_come_where_the_shell_of_the_tests_ignores_them() -> None:
    """As a shell does in which they run in the background."""
    shown = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    text = f"""
        import os, signal
        from tests.suite.warm_python import _become
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _become(["-c", {shown!r}], dict(os.environ), os.getcwd(), os.dup(1), os.dup(2))
    """
    assert run("-c", textwrap.dedent(text)).stdout == "True\n"


@pytest.mark.nightly
def test_no_operators_are_there_before() -> None:
    """So that a program is as the first of its process."""
    text = "import sys, opwright; print(sorted({'sympy', 'torch._dynamo', 'opwright.lowering.lower'} & {*sys.modules}))"
    assert (
        run("-c", text, having="opwright").stdout
        == subprocess.run(
            [sys.executable, "-c", f"import opwright; opwright.operator; {text}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )


def test_two_run_side_by_side_and_one_is_killed() -> None:
    waiting = start("-c", "print('begun', flush=True); import time; time.sleep(600)")
    assert run("-c", "print(1)").stdout == "1\n"
    os.kill(waiting.pid, signal.SIGKILL)
    waiting.communicate()
    assert waiting.returncode == -signal.SIGKILL


def test_what_takes_too_long_is_killed() -> None:
    waiting = start("-c", "import time; time.sleep(600)")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.communicate(timeout=0.2)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and Path(f"/proc/{waiting.pid}").exists():
        time.sleep(0.01)
    assert not Path(f"/proc/{waiting.pid}").exists()


def test_threads_ask_at_once() -> None:
    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(lambda number: run("-c", f"print({number})").stdout, range(24)))
    assert done == [f"{number}\n" for number in range(24)]


def test_forks_ask_at_once() -> None:
    run("-c", "pass")
    forks = multiprocessing.get_context("fork")
    with forks.Pool(4) as processes:
        done = processes.map(_printed, range(24), chunksize=1)
    assert done == [f"{number}\n" for number in range(24)]


def _printed(number: int) -> str:
    return run("-c", f"print({number})").stdout
