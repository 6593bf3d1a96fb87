"""What a machine does to a build: compilers that fail in every way, disks that are full, folders that are none."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import opwright
from opwright.api.operator import Operator
from opwright.settings import Settings
from tests.executables import write_executable
from tests.faults.injection import sample
from tests.faults.trial import Subject, problems
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.falls_back


def scaled(x: Tensor, y: Tensor) -> Tensor:
    return x * y + y


def results(function: Callable[..., Any]) -> list[Tensor]:
    x = torch.linspace(-1, 1, 6).requires_grad_()
    z = function(x, torch.full((6,), 2.0))
    return [z.detach(), *torch.autograd.grad(z.sum(), x)]


def subject(cache: Path, compiler: str | None = None, **more: Any) -> Subject:
    settings = Settings(cache, compiler or keeping_compiler(OPTIMIZING_NOTHING), **{"tape": "off", **more})
    return Subject(scaled, lambda: Operator(scaled, settings=settings, identity=lambda _: "scaled"), results)


@contextlib.contextmanager
def as_it_is() -> Iterator[None]:
    yield


# -- compilers ---------------------------------------------------------------------------------------------------------

QUESTIONS = """\
case "$*" in
  *--version*) echo "Free Software Foundation"; exit 0;;
  *-fsyntax-only*) exit 0;;
esac
"""
PRODUCT = 'while [ "$1" != -o ]; do shift; done; product=$2\n'
COMPILERS = {
    "fails": QUESTIONS + "exit 1",
    "fails and prints much": QUESTIONS + "head -c 10000000 /dev/zero | tr '\\0' x; exit 1",
    "fails and prints bytes": QUESTIONS + "printf '\\377\\376'; exit 1",
    "is killed": QUESTIONS + "kill -9 $$",
    "crashes": QUESTIONS + "kill -SEGV $$",
    "hangs": QUESTIONS + "sleep 1000",
    "hangs, and what it started too": QUESTIONS + "sleep 1000 & sleep 1000",
    "writes nothing": QUESTIONS + "exit 0",
    "writes garbage": QUESTIONS + PRODUCT + 'echo garbage > "$product"',
    "writes an empty file": QUESTIONS + PRODUCT + ': > "$product"',
    "writes a folder": QUESTIONS + PRODUCT + 'mkdir "$product"',
    "writes half": QUESTIONS + 'all="$*"; ' + PRODUCT + '{real} $all; truncate -s 6000 "$product"',
    "writes all but a byte": QUESTIONS + 'all="$*"; ' + PRODUCT + '{real} $all; truncate -s -1 "$product"',
    "removes its folder": QUESTIONS + 'rm -rf "$PWD"; exit 1',
    "fills the disk and fails": QUESTIONS + "echo 'No space left on device'; exit 1",
    "does not know itself": "exit 127",
    "hangs when it is asked": "sleep 1000",
    "says nothing of itself": 'case "$*" in *--version*) exit 0;; esac; exit 1',
    "knows no flag": 'case "$*" in *--version*) echo g++; exit 0;; esac; exit 1',
}


@pytest.mark.parametrize(
    "script", mostly_at_night(COMPILERS.values(), by_day=[*COMPILERS.values()][::8]), ids=COMPILERS
)
def test_a_compiler_that_fails(script, tmp_path, monkeypatch):
    real = shlex.quote(keeping_compiler(OPTIMIZING_NOTHING))
    compiler = tmp_path / "compiler"
    write_executable(compiler, f"#!/bin/sh\n{script.replace('{real}', real)}\n")
    building_s, asking_s = (0.3 if hangs else 10.0 for hangs in ("sleep 1000" in script, script == "sleep 1000"))
    with monkeypatch.context() as impatient:
        impatient.setitem(opwright.toolchain.build.build.__kwdefaults__, "timeout_s", building_s)
        impatient.setattr("opwright.toolchain.process.asking.PROBE_TIMEOUT_S", asking_s)
        assert not problems(subject(tmp_path / "cache", str(compiler)), as_it_is, recovers=False)
    write_executable(compiler, f'#!/bin/sh\nexec {real} "$@"\n')  # as after an update: the next process asks again
    operator = subject(tmp_path / "cache", str(compiler)).make()
    results(operator)
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize("words", ["/nonexistent", "", "/", "g++ --nonsense", "'unbalanced"])
def test_a_compiler_that_is_none(words, tmp_path):
    assert not problems(subject(tmp_path / "cache", words or " "), as_it_is, recovers=False)


# -- the cache directory -----------------------------------------------------------------------------------------------


def _file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text("")
    return path


def _open_to_all(path: Path) -> Path:
    path.mkdir()
    path.chmod(0o777)
    return path


def _linked(path: Path, target: str) -> Path:
    path.symlink_to(target)
    return path


DIRECTORIES = {
    "a file": lambda p: _file(p / "cache"),
    "below a file": lambda p: _file(p / "file") / "cache",
    "a link to nothing": lambda p: _linked(p / "cache", "nothing/at/all"),
    "a link to itself": lambda p: _linked(p / "cache", "cache"),
    "in /proc": lambda p: Path("/proc/opwright"),
    "a device": lambda p: Path("/dev/null"),
    "open to all": lambda p: _open_to_all(p / "cache"),
    "with a name that is too long": lambda p: p / ("x" * 300),
    "with a zero byte in its name": lambda p: p / "a\0b",
    **{
        f"with a file for {name}": lambda p, name=name: _file(p / "cache" / name).parent
        for name in ("libraries", "locks", "building", "records")
    },
}


@pytest.mark.parametrize("directory", DIRECTORIES.values(), ids=DIRECTORIES)
def test_a_cache_directory_that_is_none(directory, tmp_path):
    assert not problems(subject(directory(tmp_path)), as_it_is, recovers=False)


@pytest.mark.parametrize("options", ["noexec", "size=64k", "ro"])
def test_a_mounted_cache_directory(options, tmp_path):
    mounted = ["mount", "-t", "tmpfs", "-o", f"{options},mode=0700", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        assert not problems(subject(tmp_path), as_it_is, recovers=False)
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


# -- the system --------------------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[Any, str]] = {
    "os.open": (os, "open"),
    "os.mkdir": (os, "mkdir"),
    "os.replace": (os, "replace"),
    "os.rename": (os, "rename"),
    "os.stat": (os, "stat"),
    "os.fdopen": (os, "fdopen"),
    "os.pwrite": (os, "pwrite"),
    "os.truncate": (os, "truncate"),
    "os.getpid": (os, "getpid"),
    "os.path.realpath": (os.path, "realpath"),
    "tempfile.mkdtemp": (tempfile, "mkdtemp"),
    "tempfile.mkstemp": (tempfile, "mkstemp"),
    "tempfile.TemporaryFile": (tempfile, "TemporaryFile"),
    "Path.write_text": (Path, "write_text"),
    "Path.read_bytes": (Path, "read_bytes"),
    "Path.mkdir": (Path, "mkdir"),
    "Path.iterdir": (Path, "iterdir"),
    "Path.glob": (Path, "glob"),
    "Path.exists": (Path, "exists"),
    "subprocess.Popen": (subprocess, "Popen"),
    "subprocess.run": (subprocess, "run"),
    "shutil.which": (shutil, "which"),
    "shutil.rmtree": (shutil, "rmtree"),
    "ctypes.CDLL": (ctypes, "CDLL"),
    "fcntl.flock": (__import__("fcntl"), "flock"),
    "torch.library.Library.impl": (torch.library.Library, "impl"),
    "torch._C._get_operation_overload": (torch._C, "_get_operation_overload"),
    "json.dumps": (__import__("json"), "dumps"),
    "json.loads": (__import__("json"), "loads"),
}
REFUSALS = {
    "full": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "denied": lambda: PermissionError(errno.EACCES, "Permission denied"),
    "broken": lambda: OSError(errno.EIO, "Input/output error"),
    "memory": lambda: MemoryError(),
}
REFUSED = list(itertools.product(CALLS, REFUSALS, (1, 3, None)))


@contextlib.contextmanager
def refused(call: str, refusal: str, at: int | None) -> Iterator[None]:
    """A function of the system fails at its n-th call, or always."""
    owner, name = CALLS[call]
    original, counted = getattr(owner, name), itertools.count(1)

    def fails(*args: Any, **kwargs: Any) -> Any:
        if at is None or next(counted) == at:
            raise REFUSALS[refusal]()
        return original(*args, **kwargs)

    setattr(owner, name, fails)
    try:
        yield
    finally:
        setattr(owner, name, original)


@pytest.mark.parametrize("count", [8, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_system_that_refuses(count, tmp_path):
    chosen, found = sample(REFUSED, count, seed=5), []
    for number, fault in enumerate(chosen):
        struck = subject(tmp_path / str(number))
        for problem in problems(struck, lambda fault=fault: refused(*fault)):
            found.append(f"{fault}: {problem}")
    assert not found, f"{len(found)} problems after {len(chosen)} faults:\n" + "\n".join(found)
    print(f"{len(chosen)} refusals of the system")


def test_a_system_that_does_not_tell_its_cores(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    operator = subject(tmp_path / "cache").make()
    results(operator)
    assert operator.last_rung == "cpp"


# -- libraries that go away --------------------------------------------------------------------------------------------


HARMS = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "overwritten": lambda path: path.write_bytes(b"no library"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_library_that_is_harmed_before_it_is_loaded(harm, tmp_path, monkeypatch):
    load = opwright.binding.variants.variant.load_launcher

    def harmed(path: Path, name: str) -> Any:
        HARMS[harm](path)
        return load(path, name)

    @contextlib.contextmanager
    def strike() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr("opwright.binding.variants.variant.load_launcher", harmed)
            yield

    def another(x: Tensor, y: Tensor) -> Tensor:  # a name of its own: a library is loaded once in a process
        return scaled(x, y)

    another.__name__ = f"another_{harm}"
    settings = Settings(tmp_path / "cache", keeping_compiler(OPTIMIZING_NOTHING), tape="off")
    assert not problems(Subject(another, lambda: Operator(another, settings=settings), results), strike)


# -- the hot path in C++ -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        "opwright.binding.native.module_of_library",
        "opwright.binding.native.Extension",
        "opwright.toolchain.headers.extension.Extension.find",
        "opwright.toolchain.headers.extension.Extension.build",
        "opwright.binding.variants.variants.Tape",
    ],
)
def test_a_hot_path_that_cannot_be_had_leaves_the_kernels(step, tmp_path, monkeypatch):
    def fails(*_: Any, **__: Any) -> Any:
        raise AssertionError("injected")

    monkeypatch.setattr("opwright.binding.variants.variants.native", opwright.binding.native.Native(tmp_path))
    monkeypatch.setattr(step, fails)
    operator = subject(tmp_path / "cache", tape="now").make()
    torch.testing.assert_close(results(operator), results(scaled))
    assert operator.last_rung == "cpp"
    assert not problems(subject(tmp_path / "cache", tape="now"), as_it_is)
