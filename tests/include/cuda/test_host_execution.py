"""CUDA kernels on the processor: what they give, and that faults of a kernel are found."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import opwright
from opwright.toolchain.gpu.nvrtc import compile_cuda
from tests.keeping_compiler import keeping_compiler

HERE = Path(__file__).parent
HEADERS = Path(opwright.__file__).parent / "include"
THREADS = ("-O1", "-fsanitize=thread")
ADDRESSES = ("-O1", "-fsanitize=address,undefined", "-fsanitize-sections=opwright_shared", "-fno-sanitize-recover=all")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a case with a driver that is built with some flags."""
    drivers: dict[tuple[str, ...], Path] = {}

    def run_case(name: str, *flags: str) -> subprocess.CompletedProcess[str]:
        if flags not in drivers:
            driver = tmp_path_factory.mktemp("host") / "driver"
            command = [keeping_compiler("", "g++"), "-std=c++17", "-g", *flags, str(HERE / "host_driver.cpp")]
            subprocess.run([*command, f"-I{HEADERS}", "-o", str(driver)], check=True)
            drivers[flags] = driver
        return subprocess.run([str(drivers[flags]), name], capture_output=True, text=True, check=False)

    return run_case


def counted_up(count: int) -> np.ndarray:
    return np.arange(count) % 7 + 1.0


def exchanged(thread: int) -> list[int]:
    """What a lane hears, by the CUDA C++ programming guide."""
    lane = thread % 32
    return [
        105,
        100 + lane // 8 * 8 + 3,
        100 + (lane if lane < 3 else lane - 3),
        100 + (lane if lane % 16 + 3 > 15 else lane + 3),
        100 + (lane ^ 1),
        sum(1 << other for other in range(0, 32, 3)),
        1,
        107 if lane < 8 else -1,
    ]


def functions(x: np.ndarray) -> np.ndarray:
    erf = np.vectorize(math.erf)
    k = np.arange(len(x))
    return np.stack(
        [
            np.tanh(x) + 1 / np.sqrt(x) + erf(x) + np.maximum(x, 1),
            x + 8 + 31 - k,
            np.zeros(len(x)),
            np.where(k == 0, 0, 2.0 ** (k - 1)) + 2 * x + 1,
        ],
        axis=1,
    ).ravel()


EXPECTED = {
    "scale": 2 * counted_up(1003),
    "row_sums": counted_up(1500).reshape(5, 300).sum(1),
    "column_sums": counted_up(70 * 45).reshape(70, 45).sum(0),
    "reversed": counted_up(96).reshape(2, 48)[:, ::-1].ravel(),
    "exchanges": np.array([exchanged(thread) for thread in range(64)]).ravel(),
    "votes": np.full(65, 32 + 1000),
    "functions": functions(counted_up(7)),
    "counted": np.array([3 * 63 * 32, 65, 2**32 - 1]),
    "places": np.add.outer(100 * np.arange(6), np.arange(12)).ravel(),
    "unwritten": np.full(64, np.nan),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_kernels_give_what_they_give_on_a_gpu(name: str, run: Run) -> None:
    done = run(name, "-O1")

    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose([float(line) for line in done.stdout.split()], EXPECTED[name], rtol=1e-15)


@pytest.mark.nightly
def test_stacks_are_changed_by_the_system_where_the_processor_is_another(run: Run) -> None:
    assert run("row_sums", "-O1", "-DOPWRIGHT_UCONTEXT").stdout == run("row_sums", "-O1").stdout


FAILURES = {
    "too few at the barrier": r"thread (0, 0, 0) waits at the barrier of .*:\d+, "
    r"which thread (40, 0, 0) does not come to: it has ended",
    "at different barriers": r"waits at the barrier of .*, which thread (32, 0, 0) does not come to: "
    r"it waits at the barrier of .*:\d+",
    "half a warp": r"waits at the exchange within a warp of .*, which thread (16, 0, 0) does not come to: "
    r"it waits at the barrier of .*:\d+",
    "not in its mask": r"thread (1, 0, 0) waits at the exchange within a warp of .*, "
    r"which thread (0, 0, 0) does not come to: it has ended",
    "too many threads": "kernel votes is launched with blocks of 1025 threads",
    "no blocks": "kernel votes is launched with blocks of 64 threads; there are 1 to 1024, in at least one block",
}


@pytest.mark.parametrize("name", FAILURES)
def test_threads_that_wait_in_vain_are_an_error(name: str, run: Run) -> None:
    done = run(name, "-O1")
    pattern = FAILURES[name].replace("(", r"\(").replace(")", r"\)")

    assert done.returncode == 1
    assert re.search(pattern, done.stderr), done.stderr


def test_a_missing_barrier_gives_wrong_numbers_in_one_block_or_the_other(run: Run) -> None:
    given = np.array([float(line) for line in run("neighbour", "-O1").stdout.split()]).reshape(2, 64)
    right = np.roll(counted_up(128).reshape(2, 64), 1, axis=1)

    assert [int(np.isnan(block).sum()) for block in given] == [1, 63]  # upwards all but the first are in time
    np.testing.assert_array_equal(given[~np.isnan(given)], right[~np.isnan(given)])


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["scale", "row_sums", "column_sums", "reversed", "exchanges", "votes", "counted"])
def test_right_kernels_are_clean(name: str, run: Run) -> None:
    for flags in (THREADS, ADDRESSES):
        done = run(name, *flags)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "flag"), [("neighbour", ""), ("row_sums", "-DWITHOUT_BARRIER")])
def test_a_missing_barrier_is_found_by_the_thread_sanitizer(name: str, flag: str, run: Run) -> None:
    done = run(name, *THREADS, *filter(None, [flag]))

    assert done.returncode == 66
    assert f"data race {HERE}/host_kernels.cu:" in done.stderr


OVERRUNS = {
    "past global memory": "heap-buffer-overflow",
    "past shared memory": "global-buffer-overflow|out of bounds",
    "reversed with too little shared memory": "heap-buffer-overflow",
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", OVERRUNS)
def test_what_runs_over_is_found_by_the_address_sanitizer(name: str, run: Run) -> None:
    done = run(name, *ADDRESSES)

    assert done.returncode != 0
    assert re.search(OVERRUNS[name], done.stderr), done.stderr
    assert "host_kernels.cu" in done.stderr


def test_the_same_text_compiles_for_a_gpu() -> None:
    text = '#include "opwright/cuda/dynamic_shared.h"\n' + (HERE / "host_kernels.cu").read_text()
    image = compile_cuda(text, "sm_90", HEADERS)

    assert all(name.encode() in image for name in ("scale", "row_sums", "reversed", "exchanges"))
