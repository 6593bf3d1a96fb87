"""divisors.h alone: quotients by one number are those that a division gives, to the last bit."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import opwright
from tests.keeping_compiler import keeping_compiler

HEADERS = Path(opwright.__file__).parent / "include"
MACHINES = ["native", "x86-64"] if platform.machine() == "x86_64" else ["native"]
SMALL = 2.0**-100  # below it a quotient may be an ulp off
Divided = Callable[[np.ndarray, np.float32], np.ndarray]
SOURCE = """
#include "opwright/divisors.h"

using namespace opwright;

extern "C" void divide(const float* numbers, float by, float* quotients, long count) {
  const Divisor divisor = divisor_of(by);
#pragma omp simd
  for (long j = 0; j < count; ++j) quotients[j] = numbers[j] / divisor;
}

// For divisors of all mantissas: how many of the quotients that lie nearest to the middle between two numbers, where an
// error would show, are not those of a division.
extern "C" long wrong_near_ties(uint32_t step) {
  constexpr uint32_t one = 1u << 23;
  long wrong = 0;
  for (uint32_t odd = one + 1; odd < 2 * one; odd += 2 * step) {
    uint32_t inverse = odd;
    for (int k = 0; k < 5; ++k) inverse *= 2 - odd * inverse;  // modulo 2^32
    for (int bits = 24; bits <= 25; ++bits) {
      for (int32_t left = -7; left <= 7; ++left) {
        const uint64_t twice = (static_cast<uint64_t>(inverse) * static_cast<uint32_t>(left)) & ((1ul << bits) - 1);
        const uint64_t tie = twice < 2 * one ? twice + (1ul << bits) : twice;
        const int64_t number = static_cast<int64_t>((odd * tie - left) >> bits);
        if (left == 0 || tie < 2 * one || tie >= 4 * one || number < 1 || number >= 2 * one) continue;
        const float x = static_cast<float>(number), by = static_cast<float>(odd);
        wrong += x / divisor_of(by) != x / by;
      }
    }
  }
  return wrong;
}
"""


@pytest.fixture(scope="module", params=MACHINES)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("divisors")
    source, made = folder / "divisors.cpp", folder / "divisors.so"
    source.write_text(SOURCE)
    options = ["-std=c++17", "-O2", "-fopenmp-simd", "-fno-trapping-math", "-ffp-contract=off", "-shared", "-fPIC"]
    machine = [f"-march={request.param}", f"-I{HEADERS}"]
    subprocess.run([keeping_compiler("", "g++"), *options, *machine, str(source), "-o", str(made)], check=True)
    loaded = ctypes.CDLL(str(made))
    loaded.divide.argtypes = [ctypes.c_void_p, ctypes.c_float, ctypes.c_void_p, ctypes.c_long]
    loaded.wrong_near_ties.argtypes, loaded.wrong_near_ties.restype = [ctypes.c_uint32], ctypes.c_long
    return loaded


@pytest.fixture
def divided(library: ctypes.CDLL) -> Divided:
    def quotients(numbers: np.ndarray, by: np.float32) -> np.ndarray:
        result = np.empty_like(numbers)
        library.divide(numbers.ctypes.data, float(by), result.ctypes.data, numbers.size)
        return result

    return quotients


def any_numbers(count: int, seed: int) -> np.ndarray:
    """Numbers of all sizes: bits by chance."""
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32).view(np.float32)


ENDS = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        3.0,
        0.7,
        np.inf,
        -np.inf,
        np.nan,
        3.4e38,
        -3.4e38,
        1.2e-38,
        1e-38,
        1e-45,
        -1e-45,
        1e30,
        1e-30,
    ]
).astype(np.float32)


@np.errstate(all="ignore")
def same(actual: np.ndarray, numbers: np.ndarray, by: np.float32) -> np.ndarray:
    """Whether quotients are those of a division, or within an ulp where they may be."""
    expected = numbers / by
    tiny = (abs(numbers) < SMALL) | (abs(expected) < SMALL)
    far = abs(actual.view(np.int32).astype(np.int64) - expected.view(np.int32))
    return np.isnan(actual) & np.isnan(expected) | (far <= tiny)


@pytest.mark.parametrize("seed", range(3))
def test_quotients_are_those_of_a_division(divided: Divided, seed: int) -> None:
    for by in (*ENDS, *any_numbers(200, seed)):
        numbers = np.concatenate([ENDS, any_numbers(2000, seed + 10)])
        assert same(divided(numbers, by), numbers, by).all()


def test_a_product_with_the_reciprocal_would_be_found_out() -> None:
    numbers, by = np.linspace(1, 2, 1000, dtype=np.float32), np.float32(0.7)
    assert not same(numbers * (1 / by), numbers, by).all()


def test_signs_of_zeros(divided: Divided) -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    for by in (2.5, -2.5, 1e-40, -1e-40, 1e35, -1e35, np.inf, -np.inf):
        assert (np.signbit(divided(zeros, np.float32(by))) == np.signbit(zeros / np.float32(by))).all()


def test_quotients_that_are_almost_ties(library: ctypes.CDLL) -> None:
    assert library.wrong_near_ties(31) == 0


@pytest.mark.nightly
def test_quotients_that_are_almost_ties_by_every_divisor(library: ctypes.CDLL) -> None:
    assert library.wrong_near_ties(1) == 0
