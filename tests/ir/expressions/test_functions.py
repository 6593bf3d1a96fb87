"""Every row of the table of functions, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from opwright.ir.expressions.functions import FUNCTIONS

Array = npt.NDArray[Any]

REALS = (
    *(0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 0.1, 0.3, 0.999, 7.25, 88.5, 100.0, 1e-7, 1e-30, 3e38, float("inf")),
    *(-0.0, -0.5, -1.0, -1.5, -2.5, -3.0, -0.1, -0.3, -0.999, -7.25, -88.5, -100.0, -1e-7, -1e-30, -3e38),
    *(float("-inf"), float("nan")),
)
SMALL_INTEGERS = (0, 1, -1, 2, -2, 3, -3, 7, -7)
INTEGERS = (*SMALL_INTEGERS, 100, -100, 2**31 - 1, -(2**31))
TRUTHS = (False, True)

# Names in torch, where they are others.
IN_TORCH: dict[str, Callable[..., torch.Tensor]] = {
    "negate": torch.neg,
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "is_nan": torch.isnan,
    "is_infinite": torch.isinf,
    "shift_left": torch.bitwise_left_shift,
    "shift_right": torch.bitwise_right_shift,
}
ON_BITS = [name for name in FUNCTIONS if name.startswith(("bitwise", "shift"))]
ON_INTEGERS = (
    *("add", "subtract", "multiply", "divide", "negate", "remainder", "fmod", "minimum", "maximum", "pow"),
    *("abs", "sign", "floor", "ceil", "trunc", "round", "less", "equal", "is_nan"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right"),
)


OF_COMPLEX = ("complex", "real", "imag", "conj", "angle")
ON_COMPLEX = (
    *("real", "imag", "conj", "angle", "add", "subtract", "multiply", "divide", "negate", "abs", "reciprocal", "pow"),
    *("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "equal", "not_equal", "where"),
)


def in_torch(name: str) -> Callable[..., torch.Tensor]:
    return IN_TORCH.get(name) or getattr(torch, name)


def truncating_division(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.div(x, y, rounding_mode="trunc")


def every_combination(arity: int, values: Array) -> list[Array]:
    return [grid.ravel() for grid in np.meshgrid(*[values] * arity)]


def meaning(name: str, operands: list[Array]) -> Array:
    with np.errstate(all="ignore"):
        return FUNCTIONS[name].meaning(*operands)


def expected(function: Callable[..., torch.Tensor], operands: list[Array]) -> Array:
    return function(*map(torch.from_numpy, operands)).numpy()


def disagreements(actual: Array, wanted: Array) -> list[int]:
    """Where two results are not NaN together, or differ in sign or by more than 8 units in the last place."""
    assert actual.dtype == wanted.dtype
    if wanted.dtype.kind != "f":
        return np.flatnonzero(actual != wanted).tolist()
    close = np.isclose(actual, wanted, rtol=8 * np.finfo(wanted.dtype).eps, atol=0) & (
        np.signbit(actual) == np.signbit(wanted)
    )
    return np.flatnonzero(~(close | (np.isnan(actual) & np.isnan(wanted)))).tolist()


def assert_agrees(name: str, operands: list[Array], function: Callable[..., torch.Tensor]) -> None:
    actual, wanted = meaning(name, operands), expected(function, operands)
    wrong = disagreements(actual, wanted)
    assert not wrong, [([operand[k] for operand in operands], actual[k], wanted[k]) for k in wrong[:5]]


PLAIN = [name for name in FUNCTIONS if name != "where" and name not in ON_BITS and name not in OF_COMPLEX]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PLAIN)
def test_on_reals(name: str, dtype: type) -> None:
    operands = every_combination(FUNCTIONS[name].arity, np.array(REALS, dtype))
    if name in (
        "fmod",
        "remainder",
    ):  # where x / y overflows, torch's vectorised float32 gives NaN, its scalar code not
        with np.errstate(all="ignore"):
            sound = np.isfinite(operands[0] / operands[1]) | ~np.isfinite(operands[0]) | (operands[1] == 0)
        operands = [operand[sound] for operand in operands]
    assert_agrees(name, operands, in_torch(name))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", ON_INTEGERS)
def test_on_integers(name: str, dtype: type) -> None:
    values = SMALL_INTEGERS if name == "pow" else INTEGERS  # what overflows has no meaning in C++
    operands = every_combination(FUNCTIONS[name].arity, np.array(values, dtype))
    if name in ("divide", "remainder", "fmod"):
        overflows = (operands[0] == np.iinfo(dtype).min) & (operands[1] == -1)
        operands = [operand[(operands[1] != 0) & ~overflows] for operand in operands]
    assert_agrees(name, operands, truncating_division if name == "divide" else in_torch(name))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", ON_COMPLEX)
def test_on_complex(name: str, dtype: type) -> None:
    parts = np.array([-2.5, -1.0, -0.5, 0.25, 1.0, 3.0], dtype)
    numbers = (parts[:, None] + 1j * parts).ravel().astype(dtype)
    operands = every_combination(min(FUNCTIONS[name].arity, 2), numbers)
    operands = [operands[0].real > 0, *operands] if name == "where" else operands
    actual, wanted = meaning(name, operands), expected(lambda *x: in_torch(name)(*x).resolve_conj(), operands)
    assert actual.dtype == wanted.dtype
    np.testing.assert_allclose(actual, wanted, rtol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_complex_of_its_parts(dtype: type) -> None:
    parts = every_combination(2, np.array(REALS, dtype))
    actual = meaning("complex", parts)
    assert actual.dtype == (np.complex64 if dtype is np.float32 else np.complex128)
    np.testing.assert_array_equal(actual.real, parts[0])
    np.testing.assert_array_equal(actual.imag, parts[1])


@pytest.mark.parametrize(
    "name", ["logical_and", "logical_or", "logical_xor", "logical_not", "equal", "minimum", "sign"]
)
def test_on_truths(name: str) -> None:
    assert_agrees(name, every_combination(FUNCTIONS[name].arity, np.array(TRUTHS)), in_torch(name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_where(dtype: type) -> None:
    x, y = every_combination(2, np.array(REALS if np.dtype(dtype).kind == "f" else TRUTHS, dtype))
    for chosen in (np.zeros(x.shape, bool), np.ones(x.shape, bool), np.arange(x.size) % 2 == 0):
        assert_agrees("where", [chosen, x, y], torch.where)


@pytest.mark.parametrize(
    ("actual", "wanted"), [(0.0, -0.0), (np.nan, 1.0), (1.0, np.nan), (1.00001, 1.0), (np.inf, -np.inf), (0.0, 1e-30)]
)
def test_comparison_notices_a_wrong_value(actual: float, wanted: float) -> None:
    assert disagreements(np.array([1.0, actual], np.float32), np.array([1.0, wanted], np.float32)) == [1]
