"""Between processes: what one derived the next one finds; damage and crowds do no harm."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.executables import write_executable
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.suite.nights import mostly_at_night
from tests.suite.warm_python import start as begin_warm

pytestmark = pytest.mark.seconds(60)  # some processes import PyTorch

PROGRAM = textwrap.dedent("""
    import json, pathlib, sys
    import torch, opwright
    from torch import Tensor
    pipeline = sys.modules["opwright.operators.base"]

    FACTOR = 3

    def scaled(x):
        return x * FACTOR

    derived = []
    derive = pipeline.BaseOperator._derive
    pipeline.BaseOperator._derive = lambda self, *a, **k: derived.append(self.name) or derive(self, *a, **k)

    @opwright.operator
    def remembered(x: Tensor) -> Tensor:
        y = later(x)
        return y.sin() if x.shape[0] > 10 else scaled(y)

    def later(x):
        return x + 1

    answers = []
    for length in json.loads(sys.argv[1]):
        x = torch.linspace(-1, 1, length, requires_grad=True)
        y = remembered(x)
        y.sum().backward()
        assert torch.allclose(y, remembered.reference(x))
        answers.append(remembered.last_rung)
    print(json.dumps([answers, derived, "sympy" in sys.modules]))
""")


@pytest.fixture
def start(tmp_path):
    """Start the program in a process of its own, with a compiler that counts the sources that it is given."""
    log, started, real = tmp_path / "log", [], keeping_compiler(OPTIMIZING_NOTHING)
    compiler = tmp_path / "compiler"
    write_executable(compiler, f'#!/bin/sh\ncase "$*" in *.cpp*) echo "$*" >> {log};; esac\nexec {real} "$@"\n')
    environment = {
        **os.environ,
        "OPWRIGHT_CACHE": str(tmp_path / "cache"),
        "OPWRIGHT_TAPE": "off",
        "CXX": str(compiler),
    }

    def start_program(lengths, text=PROGRAM, begin=start_warm):
        program = tmp_path / str(len(started)) / "program.py"  # a source names the file that it was made from
        program.parent.mkdir()
        program.write_text(text)
        started.append(program)
        return begin(str(program), json.dumps(lengths), env=environment)

    start_program.builds = lambda: len(log.read_text().splitlines()) if log.exists() else 0
    return start_program


def start_warm(*command, env):
    """A process that has imported what all calls need."""
    return begin_warm(*command, env=env, having="opwright")


def with_imports(*command, env):
    """A process as users start them."""
    return subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )


def answer(process):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(output)


@pytest.mark.parametrize("begin", mostly_at_night([start_warm, with_imports], by_day=1))
def test_a_second_process_derives_and_builds_nothing(begin, start):
    assert answer(start([3, 20], begin=begin))[:2] == [["cpp", "cpp"], ["opwright::remembered"] * 2]
    built = start.builds()
    assert built > 0
    for lengths in ([3, 20], [20, 3, 5]):
        assert answer(start(lengths, begin=begin)) == [["cpp"] * len(lengths), [], False]
    assert start.builds() == built


def test_a_change_of_what_it_calls_is_derived_anew(start):
    answer(start([3]))
    for before, after in (("FACTOR = 3", "FACTOR = 4"), ("return x + 1", "return x + 2"), ("x * FACTOR", "x / FACTOR")):
        assert answer(start([3], PROGRAM.replace(before, after)))[1] == ["opwright::remembered"], after


@pytest.mark.nightly
def test_a_damaged_cache_is_repaired(start, tmp_path):
    answer(start([3]))
    for pattern, damage in (
        ("records/plans/*.json", b"{}"),
        ("libraries/*/*/*.so", b"\x7fELF and then nothing"),
        ("libraries/*/*/stamp.json", b""),
    ):
        damaged = list((tmp_path / "cache").glob(pattern))
        assert damaged
        for path in damaged:
            path.unlink()
            path.write_bytes(damage)
        assert answer(start([3]))[0] == ["cpp"], pattern
        assert answer(start([3])) == [["cpp"], [], False], pattern


@pytest.mark.parametrize("crowd_size", [4, pytest.param(16, marks=pytest.mark.nightly)])
def test_many_processes_build_once(crowd_size, start):
    crowd = [start([3]) for _ in range(crowd_size)]
    assert {tuple(answer(process)[0]) for process in crowd} == {("cpp",)}
    assert start.builds() == 4  # forward, backward, what they share, and the name of torch's library


@pytest.mark.nightly
def test_a_process_killed_while_it_builds_leaves_nothing_in_the_way(start, tmp_path):
    compiler, hangs = tmp_path / "compiler", tmp_path / "hangs"
    works = compiler.read_text()
    hanging = f'case "$*" in *remembered_forward*) echo $$ > {hangs}; exec sleep 600;; esac\nexec'
    write_executable(compiler, works.replace("exec", hanging))
    process = start([3])
    deadline = time.monotonic() + 300
    while not (hangs.exists() and hangs.read_text().strip()):
        assert time.monotonic() < deadline, "no compiler was called"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    os.kill(int(hangs.read_text()), signal.SIGKILL)
    assert list((tmp_path / "cache" / "building").iterdir()) != []
    write_executable(compiler, works)
    assert answer(start([3]))[0] == ["cpp"]
    assert list((tmp_path / "cache" / "building").iterdir()) == []
