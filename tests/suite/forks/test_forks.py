"""Tests run once each in forks, fail as they would in one process, and fail if their process dies."""

from __future__ import annotations

import collections
import re
import subprocess
from pathlib import Path

import pytest

from tests.suite.warm_python import run

ROOT = Path(__file__).parents[3]
_CONFTEST = """
import os

import pytest

from tests.suite.forks.plugin import Forks


def pytest_configure(config):
    config.pluginmanager.register(Forks(2))


def note(name):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{name} {os.getpid()}\\n")


@pytest.fixture(autouse=True)
def noted(request):
    note(request.node.name)


@pytest.fixture(scope="module")
def kept(request):
    note("begun")
    yield
    note("ended")
"""
_TESTS = """
import os

import pytest
import torch


@pytest.mark.parametrize("number", range(20))
def test_of_many(number, kept, tmp_path, capfd):
    assert not list(tmp_path.parent.glob("same")) or number
    (tmp_path / "own").mkdir()
    os.write(1, b"%d" % number)
    assert capfd.readouterr().out == str(number)


def test_by_all_threads():
    assert torch.get_num_threads() == int(os.environ["THREADS"])


def test_that_fails():
    print("said before")
    assert "one" == "other"


def test_that_is_skipped():
    pytest.skip("for a reason")


@pytest.mark.xfail(reason="known")
def test_that_may_fail():
    raise ValueError


def test_that_dies():
    os._exit(3)


def test_that_leaves():
    os._exit(0)


@pytest.fixture
def broken():
    raise KeyError("in a fixture")


def test_with_a_broken_fixture(broken):
    pass
"""


def ran(folder: Path, *options: str, tests: str = _TESTS) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The run of a file of tests, and what its tests noted."""
    (folder / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "test_planted.py").write_text(tests, encoding="utf-8")
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import pytest, torch, os"
    program += "; os.environ['THREADS'] = str(torch.get_num_threads()); sys.exit(pytest.main(sys.argv[1:]))"
    notes = folder / "notes"
    environment = {"NOTES": str(notes), "PATH": "/usr/bin:/bin", "COLUMNS": "100"}
    quick = (
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:hypothesispytest",
        "--basetemp",
        str(folder / "temporary"),
    )
    done = run("-c", program, *quick, *options, env=environment, cwd=folder, having="torch")
    return done, notes.read_text(encoding="utf-8").split("\n")[:-1] if notes.exists() else []


def test_each_test_runs_once_and_is_reported(tmp_path: Path) -> None:
    done, notes = ran(tmp_path, "-rA")
    names = [note.split()[0] for note in notes]
    counted = collections.Counter(name for name in names if name.startswith("test_"))
    assert len(counted) == 27
    assert set(counted.values()) == {1}
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert re.search("3 failed, 21 passed, 1 skipped, 1 xfailed, 1 error in", done.stdout), done.stdout
    for said in (
        "AssertionError: assert 'one' == 'other'",
        "said before",
        "ended with exit code 3 while it ran test_planted.py::test_that_dies",
        "ended with exit code 0 while it ran test_planted.py::test_that_leaves",
        "KeyError: 'in a fixture'",
        "for a reason",
    ):
        assert said in done.stdout, done.stdout


def test_workers_share_the_tests_and_end_what_they_began(tmp_path: Path) -> None:
    slow = _TESTS.replace("(tmp_path /", "import time; time.sleep(0.02); (tmp_path /")
    _, notes = ran(tmp_path, "-k", "many", tests=slow)
    workers = collections.defaultdict(list)
    for note in notes:
        name, worker = note.split()
        workers[worker].append(name)
    assert len(workers) == 2
    for names in workers.values():
        assert names[0] in ("begun", *(f"test_of_many[{number}]" for number in range(20)))
        assert names.count("begun") == names.count("ended") == 1
        assert names[-1] == "ended"


def test_it_stops_after_a_failure_if_it_is_to(tmp_path: Path) -> None:
    slow = "import time\n\ndef test_first():\n    assert False\n"
    slow += "".join(f"\ndef test_{number}():\n    time.sleep(0.2)\n" for number in range(40))
    done, notes = ran(tmp_path, "-x", tests=slow)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "stopping after 1 failures" in done.stdout
    assert len(notes) < 20


@pytest.mark.parametrize(
    ("options", "tests", "code", "said"),
    [
        (("--collect-only", "-q"), _TESTS, pytest.ExitCode.OK, "27 tests collected"),
        ((), "import nothing_of_this_name", pytest.ExitCode.INTERRUPTED, "nothing_of_this_name"),
        ((), "", pytest.ExitCode.NO_TESTS_COLLECTED, "no tests ran"),
    ],
    ids=["asked for", "does not work", "finds nothing"],
)
def test_what_only_collects(
    options: tuple[str, ...], tests: str, code: pytest.ExitCode, said: str, tmp_path: Path
) -> None:
    done, notes = ran(tmp_path, *options, tests=tests)
    assert done.returncode == code
    assert said in done.stdout
    assert not notes
