"""What a source defines is its own: packages link sources of an operator for several dtypes, with the same names.

Sources with kernels for GPUs have libraries of their own.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opwright.toolchain.recipe import INCLUDE_DIRECTORY
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler

GOLDENS = sorted(Path(__file__).parents[1].joinpath("goldens").glob("*.cpp"))
WITH_TYPES = [golden for golden in GOLDENS if {"struct", '"opwright/kernel.h"'} <= {*golden.read_text().split()}]


@pytest.mark.parametrize("golden", WITH_TYPES, ids=lambda golden: golden.stem)
def test_nothing_emitted_is_seen_by_other_sources(golden: Path, tmp_path: Path) -> None:
    compiler, made = quick_compiler(OPTIMIZING_NOTHING), str(tmp_path / "made.o")
    options = ("-std=c++17", "-fPIC", "-fopenmp-simd", "-w", "-DOPWRIGHT_APART", f"-I{INCLUDE_DIRECTORY}")
    subprocess.run([compiler, *options, "-c", str(golden), "-o", made], check=True)
    symbols = subprocess.run(["nm", "-C", "--extern-only", "--defined-only", made], capture_output=True, text=True)
    assert symbols.returncode == 0
    seen = [line for line in symbols.stdout.splitlines() if "emitted::" in line]
    assert not seen


def test_there_are_such_sources() -> None:
    assert len(WITH_TYPES) >= 2
