"""rows.h alone: random axes and strides against NumPy, under the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import opwright
from tests.include.rows_cases import random_case
from tests.keeping_compiler import keeping_compiler
from tests.suite.nights import mostly_at_night

HERE = Path(__file__).parent
HEADERS = Path(opwright.__file__).parent / "include"
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture(scope="module", params=mostly_at_night(["streamed", "cached"], by_day=1))
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The driver as a library, and what has to be loaded before it; streamed: small results too go past the caches."""
    library = tmp_path_factory.mktemp("rows") / "rows.so"
    command = [
        keeping_compiler("", "g++"),
        "-std=c++20",
        "-O1",
        "-shared",
        "-fPIC",
        f"-I{HEADERS}",
        str(HERE / "rows_driver.cpp"),
    ]
    if request.param == "streamed":
        command.append("-DOPWRIGHT_LEAST_STREAMED_BYTES=64")
    runtime = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    if Path(runtime.stdout.strip()).is_file():
        subprocess.run([*command, *SANITIZERS, "-o", str(library)], check=True)
        return library, runtime.stdout.strip()
    subprocess.run([*command, "-o", str(library)], check=True)
    return library, ""


def run_cases(driver: tuple[Path, str], seeds: range, wrong: bool = False) -> subprocess.CompletedProcess[str]:
    """Run cases in a process of their own: the sanitizers must be loaded first, and end it at the first finding."""
    library, runtime = driver
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": str(HERE.parents[1]),
    }
    command = [sys.executable, "-m", "tests.include.rows_cases", str(library), json.dumps([*seeds]), str(int(wrong))]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("block", mostly_at_night(range(4), by_day=1))
def test_random_axes_and_strides(block: int, driver: tuple[Path, str]) -> None:
    done = run_cases(driver, range(block * 300, block * 300 + 300))
    assert done.returncode == 0, done.stderr[-3000:]


def test_comparison_notices_a_wrong_stride(driver: tuple[Path, str]) -> None:
    assert "differs" in run_cases(driver, range(20), wrong=True).stderr


def test_cases_cover_what_can_happen() -> None:
    cases = [random_case(seed) for seed in range(1200)]
    assert {len(case.extents) for case in cases} == {1, 2, 3, 5}
    assert {case.dtype for case in cases} == {"float32", "int64", "uint8", "int16", "complex128"}
    assert any(0 in case.extents for case in cases)
    assert any(case.grain < case.total for case in cases)
    assert any(case.grain >= case.total > 0 for case in cases)
    assert any(case.extents[-1] > 256 for case in cases)  # more than one buffer of gathered elements
    assert any(0 in case.strides("x") for case in cases)
