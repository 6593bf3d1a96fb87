"""exp, sin and cos of complex floats with an angle near zero: within 3.5 ulp in each part, zeros with their signs."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.include.vmath_functions import TARGETS, compile_with_gcc
from tests.suite.nights import mostly_at_night

MOST_ULPS = 3.5
FARTHEST_ANGLE, LARGEST_EXPONENT = 2.0**20, 64.0
FUNCTIONS = {"exp": np.exp, "sin": np.sin, "cos": np.cos}
SOURCE = "\n".join(
    [
        '#include "opwright/complex.h"',
        "using namespace opwright;",
        *(
            f'extern "C" void near_{name}(const Complex<float>* x, Complex<float>* y, long count) {{\n'
            f'_Pragma("omp simd") for (long j = 0; j < count; ++j) store_whole(y[j], {name}<Angles::near>(x[j]));\n}}'
            for name in FUNCTIONS
        ),
        'extern "C" bool all_near(const Complex<float>* x, bool of_exp, long count) {',
        "std::int32_t farthest = 0;",
        "for (long j = 0; j < count; ++j)"
        " farthest = of_exp ? farther_in_exp(farthest, x[j]) : farther(farthest, x[j]);",
        "return are_near(farthest);",
        "}",
    ]
)


@pytest.fixture(scope="module", params=mostly_at_night(TARGETS, 1))
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("complex_near")
    source, made = folder / "near.cpp", folder / "near.so"
    source.write_text(SOURCE + "\n")
    compile_with_gcc(request.param, "-shared", "-fPIC", str(source), "-o", str(made))
    loaded = ctypes.CDLL(str(made))
    loaded.all_near.restype = ctypes.c_bool
    return loaded


def applied(library: ctypes.CDLL, name: str, x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    function = getattr(library, f"near_{name}")
    function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_long(x.size))
    return y


def numbers_of(name: str, angles: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    angles, exponents = angles.astype(np.float32), exponents.astype(np.float32)
    re, im = (exponents, angles) if name == "exp" else (angles, exponents)
    return np.ascontiguousarray(np.stack([re, im], -1)).view(np.complex64)[..., 0]


def exact(name: str, x: np.ndarray) -> np.ndarray:
    """The function in extended precision; NumPy's own of complex numbers loses the smallest parts."""
    re, im = x.real.astype(np.longdouble), x.imag.astype(np.longdouble)
    if name == "exp":
        return np.stack([np.exp(re) * np.cos(im), np.exp(re) * np.sin(im)], -1)
    if name == "sin":
        return np.stack([np.sin(re) * np.cosh(im), np.cos(re) * np.sinh(im)], -1)
    return np.stack([np.cos(re) * np.cosh(im), -np.sin(re) * np.sinh(im)], -1)


def ulps(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    smallest = np.finfo(np.float32).tiny
    return np.abs(found - wanted) / np.spacing(np.maximum(np.abs(wanted), smallest).astype(np.float32))


def sizes(generator: np.random.Generator, largest: float, count: int) -> np.ndarray:
    """Numbers of both signs, half of them of any size and half close to the largest."""
    powers = np.log2(largest) - np.concatenate(
        [generator.uniform(1e-6, 40, count // 2), generator.uniform(1e-6, 6, count // 2)]
    )
    return generator.permutation(np.exp2(powers) * generator.choice([-1.0, 1.0], count))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_small(library: ctypes.CDLL, name: str) -> None:
    generator = np.random.default_rng(5)
    x = numbers_of(name, sizes(generator, FARTHEST_ANGLE, 400_000), sizes(generator, LARGEST_EXPONENT, 400_000))
    found = applied(library, name, x).view(np.float32).reshape(-1, 2)
    worst = ulps(found.astype(np.longdouble), exact(name, x)).max()
    assert worst < MOST_ULPS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_zeros_keep_their_signs(library: ctypes.CDLL, name: str) -> None:
    places = np.array([0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 50.0, -50.0])
    x = numbers_of(name, *map(np.ravel, np.meshgrid(places, places)))
    found, wanted = applied(library, name, x).view(np.float32).reshape(-1, 2), exact(name, x)
    assert np.array_equal(np.signbit(found), np.signbit(wanted))
    assert np.array_equal(found == 0, wanted == 0)


@pytest.mark.parametrize("part", ["angle", "exponent"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_not_near_is_seen(library: ctypes.CDLL, name: str, part: str) -> None:
    end = FARTHEST_ANGLE if part == "angle" else LARGEST_EXPONENT
    for size in (np.nextafter(np.float32(end), np.float32(0)), -end, 1e30, np.inf, -np.inf, np.nan):
        parts = np.array([0.0, size, 1.0]), np.array([1.0, 0.5, 0.0])
        x = numbers_of(name, *(parts if part == "angle" else reversed(parts)))
        near = library.all_near(ctypes.c_void_p(x.ctypes.data), name == "exp", ctypes.c_long(x.size))
        assert near == (abs(size) < end), size
