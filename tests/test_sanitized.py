"""Emitted kernels built with the address and undefined-behaviour sanitizers, over the same samples as elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUITES = {
    "reductions": ("tests/operator/test_reductions.py",),
    "layouts": ("tests/operator/test_layouts.py", "tests/operator/test_calls.py"),
    "random programs": ("tests/test_random_programs.py",),
}


@pytest.mark.nightly
@pytest.mark.parametrize("suite", SUITES)
def test_emitted_kernels_are_clean(suite: str, tmp_path: Path) -> None:
    found = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    runtime = found.stdout.strip()
    if not Path(runtime).is_file():
        pytest.skip("the sanitizers' runtime is not installed")
    environment = {
        **os.environ,
        "CXX": "g++ -fsanitize=address,undefined -fno-sanitize-recover=all",
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",
        "OPWRIGHT_CACHE": str(tmp_path / "cache"),
        "OPWRIGHT_TAPE": "off",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SUITES[suite]]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
