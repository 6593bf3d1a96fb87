"""sums.h alone: sums are added up in the order that it promises, bit for bit, whatever the processor's vectors."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import opwright
from tests.keeping_compiler import keeping_compiler

HEADERS = Path(opwright.__file__).parent / "include"
TORCH = Path(torch.__file__).parent / "lib"
COUNTS = range(601)
LANES = 16
MACHINES = ["native", "x86-64"] if platform.machine() == "x86_64" else ["native"]
Summed = Callable[[np.ndarray], float]


@pytest.fixture(scope="module", params=MACHINES)
def sum_of(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Summed:
    """The function for arrays of either dtype."""
    folder = tmp_path_factory.mktemp("sums")
    source, library = folder / "sums.cpp", folder / "sums.so"
    functions = (
        f'extern "C" double of_{kind}(const {kind}* values, long count) {{ return opwright::sum_of(values, count); }}'
        for kind in ("float", "double")
    )
    source.write_text("\n".join(['#include "opwright/sums.h"', *functions, ""]))
    options = ["-std=c++17", "-O2", "-fopenmp-simd", "-shared", "-fPIC", f"-march={request.param}", f"-I{HEADERS}"]
    linked = [f"-L{TORCH}", f"-Wl,-rpath,{TORCH}", "-ltorch_cpu"]
    subprocess.run([keeping_compiler("", "g++"), *options, str(source), "-o", str(library), *linked], check=True)
    loaded = ctypes.CDLL(str(library))

    def called(values: np.ndarray) -> float:
        function = loaded.of_float if values.dtype == np.float32 else loaded.of_double
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_long], ctypes.c_double
        return float(function(values.ctypes.data, values.size))

    return called


def in_order(values: np.ndarray) -> float:
    """Groups of four numbers pairwise in their own precision, then sixteen lanes in double precision, then halves."""
    sums, done = np.zeros(LANES), 0
    while values.size - done >= 4 * LANES:
        a, b, c, d = values[done : done + 4 * LANES].reshape(4, LANES)
        sums += (a + b) + (c + d)
        done += 4 * LANES
    for some in (*[LANES] * ((values.size - done) // LANES), 8, 4):
        if values.size >= LANES and values.size - done >= some:
            sums[:some] += values[done : done + some]
            done += some
    for half in (8, 4):
        sums = sums[:half] + sums[half:]
    total = float((sums[0] + sums[1]) + (sums[2] + sums[3]))
    for value in values[done:]:
        total += float(value)
    return total


def differing(summed: Summed, dtype: type) -> list[int]:
    """The counts for which the bits are others: numbers of many magnitudes, at addresses that fit no vector."""
    random = np.random.default_rng(0)
    size = COUNTS.stop + 8
    values: np.ndarray = (random.standard_normal(size) * 10.0 ** random.integers(-6, 7, size)).astype(dtype)
    return [n for n in COUNTS if summed(some := values[n % 7 : n % 7 + n]) != in_order(some)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_have_the_promised_order(sum_of: Summed, dtype: type) -> None:
    assert differing(sum_of, dtype) == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_another_order_is_noticed(dtype: type) -> None:
    assert len(differing(lambda values: float(values.sum(dtype=np.float64)), dtype)) > 400
