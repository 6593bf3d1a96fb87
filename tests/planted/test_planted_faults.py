"""The tests of the day find each planted fault."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import opwright
from tests.planted.faults import FAULTS, Planted

SOURCE = Path(opwright.__file__).parent
ROOT = Path(__file__).parents[2]
NAMES = [f"{fault.file}: {fault.wrong or 'without ' + fault.text}" for fault in FAULTS]
LIMIT_S = 1800


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_fault_can_be_planted(fault: Planted) -> None:
    assert (SOURCE / fault.file).read_text().count(fault.text) == 1
    assert all((ROOT / "tests" / each).exists() for each in fault.found_by.split())


@pytest.fixture
def planted(tmp_path: Path, fault: Planted) -> Iterator[Path]:
    shutil.copytree(SOURCE, tmp_path / "opwright", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "opwright" / fault.file
    file.write_text(file.read_text().replace(fault.text, fault.wrong))
    yield tmp_path
    shutil.rmtree(tmp_path / "opwright")


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_fault_is_found(planted: Path, fault: Planted) -> None:
    tests = [str(ROOT / "tests" / each) for each in fault.found_by.split()]
    options = ["--exitfirst", "--quiet", "--no-header", "--tb=line", "--durations=0", "--durations-min=999"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        env=os.environ | {"PYTHONPATH": str(planted)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 1, f"no test failed:\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
    assert " failed" in ran.stdout
