"""Emitted kernels built with the address and undefined-behaviour sanitizers, over the same samples as elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler

ROOT = Path(__file__).parents[1]
SUITES = {
    "reductions": ("tests/operator/test_reductions.py",),
    "layouts": ("tests/operator/test_layouts.py", "tests/operator/test_calls.py"),
    "library calls": ("tests/lowering/test_calls.py", "tests/operator/test_in_place.py", "tests/nn/test_module.py"),
    "tables": tuple(f"tests/lowering/test_{name}.py" for name in ("complex", "half", "integers", "pointwise", "views")),
    "random programs": ("tests/test_random_programs.py",),
}
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all"


OVERRUN = """
import ctypes
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.source import Source
text = 'extern "C" __attribute__((visibility("default"))) int past(int last) { return (new int[4])[last + 1]; }'
[library] = build([Source("overrun", text)], Settings.from_environment())
ctypes.CDLL(library).past(3)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One in which kernels are built with sanitizers and Python runs with theirs."""
    runtime, exceptions = library("libasan.so"), library("libstdc++.so.6")
    if not runtime.is_file():
        pytest.skip("the sanitizers' runtime is not installed")
    return {
        **os.environ,
        "CXX": quick_compiler(tmp_path, f"{OPTIMIZING_NOTHING} {SANITIZERS}", "env -u LD_PRELOAD g++"),
        "LD_PRELOAD": f"{runtime} {exceptions}",  # the runtime looks for what throws when it starts, and only then
        "ASAN_OPTIONS": "detect_leaks=0",
        "OPWRIGHT_CACHE": str(tmp_path / "cache"),
        "OPWRIGHT_TAPE": "off",
    }


def library(name: str) -> Path:
    """Where the compiler finds a library; the bare name if it does not."""
    found = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip())


@pytest.mark.nightly
@pytest.mark.parametrize("suite", SUITES)
def test_emitted_kernels_are_clean(suite: str, environment: dict[str, str]) -> None:
    shown = "--capture=sys"  # a sanitizer reports to the file descriptor and ends the process
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", shown, *SUITES[suite]]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.nightly
def test_what_runs_over_is_noticed(environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", OVERRUN]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
