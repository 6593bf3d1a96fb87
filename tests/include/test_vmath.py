"""Every function of opwright/vmath.h against the exact result, in ulp, in the loops that emitted kernels write."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.include.vmath_functions import (
    BINARY,
    EXACT,
    INLINE_DOUBLE,
    INLINE_DOUBLE_BINARY,
    TARGETS,
    UNARY,
    compile_with_gcc,
)
from tests.suite.nights import mostly_at_night

DRIVER = Path(__file__).with_name("vmath_sweep.cpp")
INTEGER_UNARY = {"abs": torch.abs, "sign": torch.sign}
INTEGER_BINARY = {
    "floor_divide": torch.floor_divide,
    "max": torch.maximum,
    "min": torch.minimum,
    "remainder": torch.remainder,
    "shift_left": torch.bitwise_left_shift,
    "shift_right": torch.bitwise_right_shift,
}
NEAR = ["near_sin", "near_cos", "near_tan"]
WRONG = ["flushes_subnormals", "loses_infinity", "loses_minus_zero", "loses_nan", "scaled"]

# Where a function or its method changes: overflow, underflow, saturation, the ends of domains and of polynomials.
LIMITS = [
    *(0.0, 0.03125, 0.17328680, 0.34657359, 0.5, 0.66666667, 0.70710678, 0.92, 1.0, 1.3333333, 1.4142135, 1.5707964),
    *(2.0, 3.1415927, 3.95, 9.011, 9.1, 10.054, 10.1, 16.635532, 18.0, 20.0, 87.33655, 88.376266, 88.722839, 89.415986),
    *(103.97208, 105.0, 126.0, 128.0, 149.0, 151.0, 8388608.0, 16777216.0, 33554432.0, 3.4028235e38),
]
SPECIAL = np.array(
    [s * v for v in (0.0, 1.0, 0.5, 2.0, 3.0, 1.1754944e-38, 3.4028235e38, np.inf, np.nan) for s in (1, -1)],
    dtype=np.float32,
)
SPECIAL_DOUBLE = np.where(
    abs(SPECIAL) == np.finfo(np.float32).max,
    np.copysign(np.finfo(np.float64).max, SPECIAL),
    np.where(abs(SPECIAL) == np.finfo(np.float32).tiny, np.copysign(np.finfo(np.float64).tiny, SPECIAL), SPECIAL),
)


def bound_ulp(name: str) -> float:
    return 0.0 if name in EXACT else 2.0


def bound_ulp_double(name: str) -> float:
    """Give 4 ulp for what the standard library computes: the test is that the right function is called."""
    return bound_ulp(name) if name in {*EXACT, *INLINE_DOUBLE, *INLINE_DOUBLE_BINARY} else 4.0


@dataclass(frozen=True, slots=True)
class Sweep:
    """The driver, compiled for one target."""

    library: ctypes.CDLL

    def apply(self, name: str, *arguments: np.ndarray) -> np.ndarray:
        result = np.empty_like(arguments[0])
        kind = "unary" if len(arguments) == 1 else "binary"
        function = getattr(self.library, f"apply_{kind}{'_double' if result.dtype == np.float64 else ''}")
        function(name.encode(), *map(_pointer, arguments), _pointer(result), ctypes.c_int64(result.size))
        return result

    def apply_integer(self, name: str, *arguments: np.ndarray) -> np.ndarray:
        result = np.empty_like(arguments[0])
        function = getattr(self.library, f"integer_{name}")
        function(*map(_pointer, arguments), _pointer(result), ctypes.c_int64(result.size))
        return result

    def worst(self, entry: str, name: str, *arguments: np.ndarray) -> tuple[float, list[float]]:
        """Give the largest distance in ulp, and the arguments it occurs at."""
        index = ctypes.c_int64()
        function = getattr(self.library, entry)
        function.restype = ctypes.c_double
        count = ctypes.c_int64(arguments[0].size)
        ulp = function(name.encode(), *map(_pointer, arguments), count, ctypes.byref(index))
        return ulp, [float(a[index.value]) for a in arguments]

    def worst_everywhere(self, name: str, thread_count: int) -> tuple[float, float]:
        index = ctypes.c_int64()
        function = self.library.worst_unary_everywhere
        function.restype = ctypes.c_double
        ulp = function(name.encode(), ctypes.c_int64(thread_count), ctypes.byref(index))
        return ulp, float(np.array([index.value], dtype=np.uint32).view(np.float32)[0])


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return array.ctypes.data_as(ctypes.c_void_p)


@pytest.fixture(scope="module", params=mostly_at_night(TARGETS, 1))
def sweep(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    library = tmp_path_factory.mktemp("vmath") / f"sweep_{request.param}.so"
    compile_with_gcc(request.param, "-shared", "-fPIC", "-pthread", str(DRIVER), "-o", str(library))
    return Sweep(ctypes.CDLL(str(library)))


def _stratified(dtype: type, integer: type, mantissa_bits: int, per_exponent: int) -> np.ndarray:
    """Random bit patterns, as many for every sign and exponent."""
    generator = np.random.default_rng(2026)
    exponent_count = 1 << (8 * np.dtype(dtype).itemsize - mantissa_bits)
    exponents = np.arange(exponent_count, dtype=integer)[:, None] << integer(mantissa_bits)
    mantissas = generator.integers(0, 1 << mantissa_bits, (exponent_count, per_exponent), dtype=integer)
    return (exponents | mantissas).ravel().view(dtype)


def _near_limits() -> np.ndarray:
    """The 33 floats around each limit and each power of two, of both signs."""
    centres = np.concatenate([np.array(LIMITS, dtype=np.float32), np.ldexp(np.float32(1), np.arange(-149, 128))])
    patterns = centres.astype(np.float32).view(np.int32)[:, None] + np.arange(-16, 17, dtype=np.int32)
    values = np.maximum(patterns, 0).ravel().view(np.float32)
    return np.concatenate([values, -values])


@pytest.fixture(scope="module", params=[4, pytest.param(1, marks=pytest.mark.nightly)])
def part(request: pytest.FixtureRequest) -> int:
    """By day a quarter of the numbers between those where a function changes."""
    return int(request.param)


@pytest.fixture(scope="module")
def floats(part: int) -> np.ndarray:
    return np.concatenate([_stratified(np.float32, np.uint32, 23, 2048 // part), _near_limits(), SPECIAL])


@pytest.fixture(scope="module")
def doubles(part: int) -> np.ndarray:
    values = _stratified(np.float64, np.uint64, 52, 32 // part)
    generator = np.random.default_rng(7)
    central = generator.uniform(-40, 40, (1 << 17) // part)
    near_one = 1 - np.exp2(generator.uniform(-53, 0, central.size // 4)) * np.sign(central[::4])
    return np.concatenate([values, central, central / 40, central * 20, near_one, -near_one, SPECIAL_DOUBLE])


def _grid(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair."""
    return np.repeat(left, right.size), np.tile(right, left.size)


def _pairs(numbers: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Unrelated pairs, pairs of moderate size, those of all finite powers, integers, neighbours, all special pairs."""
    generator = np.random.default_rng(11)
    sample = generator.permutation(numbers)
    moderate = np.exp(generator.uniform(-5, 5, numbers.size // 8)).astype(numbers.dtype)
    exponents = generator.uniform(-20, 20, moderate.size).astype(numbers.dtype)
    powers = generator.uniform(-1.05, 1.01, moderate.size) * np.finfo(numbers.dtype).maxexp
    pattern, special = (np.int32, SPECIAL) if numbers.dtype == np.float32 else (np.int64, SPECIAL_DOUBLE)
    return [
        (sample, sample[::-1].copy()),
        (moderate, exponents),
        (moderate, (powers / np.log2(moderate)).astype(numbers.dtype)),
        (-np.round(moderate), np.round(exponents)),
        (sample, (sample.view(pattern) ^ 1).view(numbers.dtype)),
        _grid(special, special),
    ]


@pytest.mark.parametrize("name", UNARY)
def test_float_is_within_bound(sweep: Sweep, floats: np.ndarray, name: str) -> None:
    ulp, where = sweep.worst("worst_unary", name, floats)
    assert ulp <= bound_ulp(name), f"{name}({where[0]!r}) is {ulp} ulp off"


@pytest.mark.parametrize("name", UNARY)
def test_double_is_within_bound(sweep: Sweep, doubles: np.ndarray, name: str) -> None:
    ulp, where = sweep.worst("worst_unary_double", name, doubles)
    assert ulp <= bound_ulp_double(name), f"{name}({where[0]!r}) is {ulp} ulp off"


def _near(sweep: Sweep, numbers: np.ndarray) -> np.ndarray:
    """The angles that functions of near ones are called with; none of doubles where there are no fused products."""
    end = sweep.library.near_end
    end.restype = ctypes.c_double
    return numbers[np.abs(numbers) < end(ctypes.c_bool(numbers.dtype == np.float64))]


def _about_multiples(like: np.ndarray) -> np.ndarray:
    """The numbers around multiples of π/2, where sines and cosines are small."""
    multiples = np.unique(np.geomspace(1, 6e5 if like.dtype == np.float32 else 1.6e8, 4000).astype(np.int64))
    half_pi = np.longdouble(np.pi) / 2 + np.longdouble(6.123233995736766e-17)
    patterns = (multiples * half_pi).astype(like.dtype).view(np.int32 if like.dtype == np.float32 else np.int64)
    return (patterns[:, None] + np.arange(-2, 3, dtype=patterns.dtype)).ravel().view(like.dtype)


@pytest.mark.parametrize("name", NEAR)
def test_angles_near_zero(sweep: Sweep, floats: np.ndarray, doubles: np.ndarray, name: str) -> None:
    for entry, numbers in (("worst_unary", floats), ("worst_unary_double", doubles)):
        angles = _near(sweep, np.concatenate([numbers, _about_multiples(numbers)]))
        ulp, where = sweep.worst(entry, name, angles) if angles.size else (0.0, [])
        assert ulp <= 2, f"{name}({where[0]!r}) is {ulp} ulp off"


@pytest.mark.parametrize("name", BINARY)
def test_binary_is_within_bound(sweep: Sweep, floats: np.ndarray, name: str) -> None:
    for pair in _pairs(floats):
        ulp, where = sweep.worst("worst_binary", name, *pair)
        assert ulp <= bound_ulp(name), f"{name}{tuple(where)} is {ulp} ulp off"


@pytest.mark.parametrize("name", INLINE_DOUBLE_BINARY)
def test_binary_double_is_within_bound(sweep: Sweep, doubles: np.ndarray, name: str) -> None:
    for pair in _pairs(doubles):
        ulp, where = sweep.worst("worst_binary_double", name, *pair)
        assert ulp <= bound_ulp_double(name), f"{name}{tuple(where)} is {ulp} ulp off"


def test_logarithms_of_powers_are_exact(sweep: Sweep) -> None:
    exponents = np.arange(-1074.0, 1024)
    np.testing.assert_array_equal(sweep.apply("log2", np.ldexp(1.0, exponents.astype(int))), exponents)
    np.testing.assert_array_equal(sweep.apply("log10", np.array([float(10**n) for n in range(23)])), np.arange(23.0))
    np.testing.assert_array_equal(sweep.apply("exp2", exponents), np.ldexp(1.0, exponents.astype(int)))


def test_powers_that_are_doubles_are_exact(sweep: Sweep) -> None:
    bases, exponents = _grid(np.arange(-40.0, 41), np.arange(10.0))
    np.testing.assert_array_equal(sweep.apply("pow", bases, exponents), bases**exponents)
    roots = np.arange(1.0, 5000)
    np.testing.assert_array_equal(sweep.apply("pow", roots * roots, np.full_like(roots, 0.5)), roots)


@pytest.mark.parametrize("name", WRONG)
def test_comparison_notices_a_wrong_function(sweep: Sweep, floats: np.ndarray, doubles: np.ndarray, name: str) -> None:
    assert sweep.worst("worst_unary", name, floats)[0] > bound_ulp(name)
    assert sweep.worst("worst_unary_double", name, doubles)[0] > bound_ulp_double(name)


def _torch_one_by_one(function: Callable[..., torch.Tensor], *arguments: np.ndarray) -> np.ndarray:
    """Apply torch's scalar code: its vectors lose fmod(3.4e38, 0.5) and the sign of min(0, -0)."""
    rows = zip(*(torch.from_numpy(a) for a in arguments), strict=True)
    return np.array([function(*row).item() for row in rows], dtype=arguments[0].dtype)


def _assert_same_special_values(ours: np.ndarray, theirs: np.ndarray) -> None:
    """NaN where torch has NaN, the same infinities, the same zeros with their signs."""
    special = ~np.isfinite(theirs) | (theirs == 0) | ~np.isfinite(ours) | (ours == 0)
    np.testing.assert_array_equal(ours[special], theirs[special])
    signed = special & ~np.isnan(theirs)
    np.testing.assert_array_equal(np.signbit(ours[signed]), np.signbit(theirs[signed]))


@pytest.mark.parametrize("name", UNARY)
def test_special_values_are_those_of_torch(sweep: Sweep, name: str) -> None:
    _assert_same_special_values(sweep.apply(name, SPECIAL), _torch_one_by_one(UNARY[name], SPECIAL))


@pytest.mark.parametrize("name", BINARY)
def test_special_pairs_are_those_of_torch(sweep: Sweep, name: str) -> None:
    pair = _grid(SPECIAL, SPECIAL)
    _assert_same_special_values(sweep.apply(name, *pair), _torch_one_by_one(BINARY[name], *pair))


@pytest.mark.parametrize("name", INLINE_DOUBLE)
def test_special_doubles_are_those_of_torch(sweep: Sweep, name: str) -> None:
    _assert_same_special_values(sweep.apply(name, SPECIAL_DOUBLE), _torch_one_by_one(UNARY[name], SPECIAL_DOUBLE))


@pytest.mark.parametrize("name", INLINE_DOUBLE_BINARY)
def test_special_pairs_of_doubles_are_those_of_torch(sweep: Sweep, name: str) -> None:
    pair = _grid(SPECIAL_DOUBLE, SPECIAL_DOUBLE)
    _assert_same_special_values(sweep.apply(name, *pair), _torch_one_by_one(BINARY[name], *pair))


INTEGERS = np.array([0, 1, -1, 2, -2, 7, -7, 2**31, 2**63 - 1, -(2**63)], dtype=np.int64)


@pytest.mark.parametrize("name", INTEGER_UNARY)
def test_integer_function_is_that_of_torch(sweep: Sweep, name: str) -> None:
    expected = INTEGER_UNARY[name](torch.from_numpy(INTEGERS)).numpy()
    np.testing.assert_array_equal(sweep.apply_integer(name, INTEGERS), expected)


@pytest.mark.parametrize("name", INTEGER_BINARY)
def test_integer_pair_is_that_of_torch(sweep: Sweep, name: str) -> None:
    divisors = np.array([1, 2, 3, -2, -3, 7, -7], dtype=np.int64)
    left, right = _grid(INTEGERS, divisors)
    expected = INTEGER_BINARY[name](torch.from_numpy(left), torch.from_numpy(right)).numpy()
    np.testing.assert_array_equal(sweep.apply_integer(name, left, right), expected)


@pytest.mark.nightly
@pytest.mark.parametrize("name", UNARY)
def test_float_is_within_bound_everywhere(sweep: Sweep, name: str) -> None:
    ulp, where = sweep.worst_everywhere(name, thread_count=torch.get_num_threads())
    assert ulp <= bound_ulp(name), f"{name}({where!r}) is {ulp} ulp off"
