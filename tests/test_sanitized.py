"""Emitted kernels built with sanitizers, over the same samples as elsewhere: C++, and CUDA that runs on the processor.

The address and undefined-behaviour sanitizers see both. The thread sanitizer sees the threads of CUDA as its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from opwright.toolchain.gpu.nvrtc import find_nvrtc
from tests.quick_compiler import CHOSEN, OPTIMIZING_NOTHING, quick_compiler

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Sanitizer:
    """How kernels are built with it, and Python is run with it.

    Attributes:
        flags: The compiler's.
        runtime: The library that is loaded before all others.
        options: Its variables of the environment.
    """

    flags: str
    runtime: str
    options: Mapping[str, str] = field(default_factory=dict)

    def environment(self, directory: Path) -> dict[str, str]:
        """That of a process with it; skips the test where it is not installed."""
        runtime, exceptions = library(self.runtime), library("libstdc++.so.6")
        if not runtime.is_file():
            pytest.skip("the sanitizer's runtime is not installed")
        compiler = quick_compiler(f"{OPTIMIZING_NOTHING} {self.flags}", "env -u LD_PRELOAD g++")
        return {
            **os.environ,
            **dict.fromkeys(("CXX", CHOSEN), compiler),
            "LD_PRELOAD": f"{runtime} {exceptions}",  # the runtime looks for what throws when it starts, and only then
            "LD_LIBRARY_PATH": str(find_nvrtc().path.parent),  # where its other half lies: the runtime opens for it
            "OPWRIGHT_CACHE": str(directory / "cache"),
            "OPWRIGHT_TAPE": "off",
            **self.options,
        }


ADDRESSES = Sanitizer(
    "-fsanitize=address,undefined -fsanitize-sections=opwright_shared -fno-sanitize-recover=all",
    "libasan.so",
    {"ASAN_OPTIONS": "detect_leaks=0"},
)
THREADS = Sanitizer(
    "-g -fsanitize=thread",
    "libtsan.so",
    {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1 exitcode=66", "OMP_NUM_THREADS": "1"},
)

CUDA = ("tests/codegen/test_cuda_kernels.py", "tests/opinfo/test_cuda.py", "tests/test_random_cuda.py")
SUITES = {
    "reductions": (ADDRESSES, ("tests/operator/test_reductions.py",)),
    "layouts": (ADDRESSES, ("tests/operator/test_layouts.py", "tests/operator/test_calls.py")),
    "library calls": (
        ADDRESSES,
        ("tests/lowering/test_calls.py", "tests/operator/test_in_place.py", "tests/nn/test_module.py"),
    ),
    "tables": (
        ADDRESSES,
        tuple(
            f"tests/lowering/{name}.py"
            for name in ("pointwise/test_complex", "pointwise/test_table", "test_half", "test_integers", "test_views")
        ),
    ),
    "indexed loads": (ADDRESSES, ("tests/operator/test_indexed_loads.py",)),
    "what is joined": (ADDRESSES, ("tests/operator/test_in_turns.py", "tests/passes/loops/test_split_where_joined.py")),
    "random programs": (ADDRESSES, ("tests/test_random_programs.py",)),
    # A kernel that writes past the end of a tensor is seldom noticed otherwise.
    "more random programs": (
        ADDRESSES,
        tuple(f"tests/test_random_programs.py::test_random_programs[{block}]" for block in range(0, 20, 2)),
    ),
    "CUDA": (ADDRESSES, CUDA),
    "threads of CUDA": (THREADS, CUDA),
}

CALLED = """
import ctypes
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.source import Source
[library] = build([Source("planted", {text!r})], Settings.from_environment())
ctypes.CDLL(library).planted(3)
"""
PLANTED = 'extern "C" __attribute__((visibility("default"))) int planted(int last) '
OVERRUN = f"{PLANTED}{{ return (new int[4])[last + 1]; }}"
RACE = f"""
#define OPWRIGHT_CUDA_ON_HOST
#include "opwright/cuda/host_execution.h"
extern "C" __global__ void turned(int* y) {{
  __shared__ int parts[64];
  parts[threadIdx.x] = threadIdx.x;
  y[threadIdx.x] = parts[63 - threadIdx.x];
}}
{PLANTED}{{
  int made[64], *y = made;
  opwright::cuda::host::run("turned", turned, 1, 64, 0, y);
  return y[last];
}}
"""


def library(name: str) -> Path:
    """Where the compiler finds a library; the bare name if it does not."""
    found = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip())


def run(sanitizer: Sanitizer, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=sanitizer.environment(directory), capture_output=True, text=True, check=False
    )


def test_there_are_such_tests() -> None:
    assert all((ROOT / test.partition("::")[0]).is_file() for _, tests in SUITES.values() for test in tests)


@pytest.mark.nightly
@pytest.mark.parametrize("suite", SUITES)
def test_emitted_kernels_are_clean(suite: str, tmp_path: Path) -> None:
    sanitizer, tests = SUITES[suite]
    shown = "--capture=sys"  # a sanitizer reports to the file descriptor and ends the process
    chosen = ["-m", "not gpu"] if all("::" in test for test in tests) else []
    done = run(sanitizer, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", shown, *chosen, *tests)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sanitizer", "text", "report"),
    [(ADDRESSES, OVERRUN, "heap-buffer-overflow"), (THREADS, RACE, "data race")],
    ids=["overrun", "race"],
)
def test_what_is_wrong_is_noticed(sanitizer: Sanitizer, text: str, report: str, tmp_path: Path) -> None:
    done = run(sanitizer, tmp_path, "-c", CALLED.format(text=text))
    assert done.returncode != 0
    assert report in done.stderr
