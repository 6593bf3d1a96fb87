"""Python arithmetic on varying numbers: as operations on 0-d tensors, and as bounds.

A row is a function of torch's symbolic numbers (sympy). Its bounds show for which numbers the tensors give Python's
result: Python has integers of any length, and raises where a kernel would give an infinity or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import sympy
import torch

FIRST_INTEGER, LAST_INTEGER = -(2**63), 2**63 - 1
_LAST_EXACT = 2**53  # integers up to here are exact in float64
_ROUNDING = 1e-15  # a few units in the last place of float64


class OutOfBounds(Exception):
    """For some numbers, Python computes something else or raises."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of a number; integers for an integer."""

    low: float
    high: float

    @classmethod
    def around(cls, *values: float) -> Bounds:
        """The bounds of some values."""
        return cls(min(values), max(values))

    @property
    def is_integral(self) -> bool:
        """Whether it is an integer."""
        return isinstance(self.low, int)

    @property
    def constant(self) -> float | None:
        """The value, if there is only one."""
        return self.low if self.low == self.high else None

    def has_zero(self) -> bool:
        """Whether it may be zero."""
        return self.low <= 0 <= self.high

    def checked(self) -> Bounds:
        """The bounds of a kernel's result, which may be rounded a little differently from Python's.

        Raises:
            OutOfBounds: If an integer needs more than 64 bits, or a float may not be finite.
        """
        if self.is_integral:
            if self.low < FIRST_INTEGER or self.high > LAST_INTEGER:
                raise OutOfBounds
            return self
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise OutOfBounds
        return Bounds(self.low - abs(self.low) * _ROUNDING, self.high + abs(self.high) * _ROUNDING)


@dataclass(frozen=True, slots=True)
class NumberFunction:
    """A function of one or two numbers; of more, it is applied to the first two, then to the result and the next.

    Attributes:
        compute: Takes tensors without dimensions, and Python numbers where they are constant.
        bound: Takes bounds, and returns those of the result.
        is_exact: Whether every bit of the result is that of Python.
    """

    compute: Callable[..., Any]
    bound: Callable[..., Bounds]
    is_exact: bool = True


def _corners(function: Callable[[float, float], float]) -> Callable[[Bounds, Bounds], Bounds]:
    """Bounds of a function that is monotonic in each operand."""
    return lambda x, y: Bounds.around(*(function(a, b) for a in (x.low, x.high) for b in (y.low, y.high)))


def _real(number: Any) -> Any:
    return number.to(torch.float64) if isinstance(number, torch.Tensor) else float(number)


def as_number_tensor(number: Any) -> torch.Tensor:
    """A number as a tensor; a constant too."""
    if isinstance(number, torch.Tensor):
        return number
    return torch.full((), number, dtype=torch.int64 if isinstance(number, int) else torch.float64)


def _quotient(x: Any, y: Any) -> torch.Tensor:
    return torch.div(_real_tensor(x), _real_tensor(y))  # x / tensor is x · (1 / tensor), rounded twice


def _quotient_bounds(x: Bounds, y: Bounds) -> Bounds:
    if y.has_zero() or any(each.is_integral and _magnitude(each) > _LAST_EXACT for each in (x, y)):
        raise OutOfBounds
    return _corners(lambda a, b: a / b)(x, y)


def _floored_quotient_bounds(x: Bounds, y: Bounds) -> Bounds:
    if not _is_divisor(y):
        raise OutOfBounds
    return _corners(lambda a, b: a // b)(x, y)


def _remainder_bounds(x: Bounds, y: Bounds) -> Bounds:
    if not _is_divisor(y):
        raise OutOfBounds
    return Bounds.around(0, y.low - 1 if y.low > 0 else y.low + 1)


def _is_divisor(y: Bounds) -> bool:
    """Whether kernels divide integers by it, see `lowering/pointwise/integers.py`."""
    return y.is_integral and y.constant not in (None, 0, -1)


def _float_remainder(x: Any, y: Any) -> torch.Tensor:
    """Python's, whose zeros have the sign of the divisor."""
    divisor = _real_tensor(y)
    remainder = torch.remainder(_real_tensor(x), divisor)
    return torch.where(remainder == 0, torch.copysign(torch.zeros_like(divisor), divisor), remainder)


def _float_remainder_bounds(x: Bounds, y: Bounds) -> Bounds:
    if y.has_zero():
        raise OutOfBounds
    return Bounds(min(0.0, float(y.low)), max(0.0, float(y.high)))


def _power(x: Any, y: Any) -> Any:
    """The power of a real number, or of any number to a small constant."""
    if isinstance(y, torch.Tensor):
        return torch.pow(_real_tensor(x), _real(y))
    if y in _FACTORS:
        return reduce(lambda product, _: product * x, range(int(y) - 1), x)
    return torch.sqrt(_real(x)) if y == 0.5 else torch.pow(_real(x), float(y))


def _power_bounds(x: Bounds, y: Bounds) -> Bounds:
    try:
        if y.constant in _FACTORS:
            magnitude = _magnitude(x) ** int(y.constant)
            return Bounds(-magnitude, magnitude) if x.low < 0 else Bounds(x.low ** int(y.low), magnitude)
        if x.is_integral or x.low < 0 or (x.low == 0 and y.low < 0):
            raise OutOfBounds
        return _corners(lambda a, b: float(a**b))(x, y)
    except OverflowError:
        raise OutOfBounds from None


def _power_of_two(x: Any, y: Any) -> Any:
    """An integer power whose exponent is no constant: of two, which is a shift."""
    return torch.bitwise_left_shift(as_number_tensor(1), y) if isinstance(y, torch.Tensor) else _power(x, y)


def _power_of_two_bounds(x: Bounds, y: Bounds) -> Bounds:
    if y.constant in _FACTORS:
        return _power_bounds(x, y)
    if x.constant != 2 or y.low < 0 or y.high > 62:
        raise OutOfBounds
    return Bounds(2 ** int(y.low), 2 ** int(y.high))


def _absolute_bounds(x: Bounds) -> Bounds:
    return Bounds(0 if x.has_zero() else min(abs(x.low), abs(x.high)), _magnitude(x))


def _magnitude(x: Bounds) -> float:
    return max(abs(x.low), abs(x.high))


def _rising(compute: Callable[[torch.Tensor], torch.Tensor], value: Callable[[float], float]) -> NumberFunction:
    """A function of `math` that grows with its operand."""

    def bound(x: Bounds) -> Bounds:
        try:
            return Bounds(value(x.low), value(x.high))
        except (ValueError, OverflowError):
            raise OutOfBounds from None

    return NumberFunction(lambda x: compute(_real_tensor(x)), bound, is_exact=value is math.sqrt)


def _swinging(compute: Callable[[torch.Tensor], torch.Tensor], most: float) -> NumberFunction:
    """A function of `math` that goes up and down between two values of one magnitude."""
    return NumberFunction(lambda x: compute(_real_tensor(x)), lambda x: Bounds(-most, most), is_exact=False)


def _real_tensor(number: Any) -> torch.Tensor:
    return as_number_tensor(_real(number))


_FACTORS = (1, 2, 3, 4)
_FLOORED_QUOTIENT = NumberFunction(
    lambda x, y: torch.div(as_number_tensor(x), y, rounding_mode="floor"), _floored_quotient_bounds
)
_REMAINDER = NumberFunction(lambda x, y: torch.remainder(as_number_tensor(x), y), _remainder_bounds)
_QUOTIENT = NumberFunction(_quotient, _quotient_bounds)

NUMBER_FUNCTIONS: Mapping[str, NumberFunction] = {
    "Add": NumberFunction(lambda x, y: x + y, _corners(lambda x, y: x + y)),
    "Mul": NumberFunction(lambda x, y: x * y, _corners(lambda x, y: x * y)),
    "Abs": NumberFunction(torch.abs, _absolute_bounds),
    "Max": NumberFunction(lambda x, y: torch.maximum(as_number_tensor(x), as_number_tensor(y)), _corners(max)),
    "Min": NumberFunction(lambda x, y: torch.minimum(as_number_tensor(x), as_number_tensor(y)), _corners(min)),
    "Identity": NumberFunction(lambda x: x, lambda x: x),
    "ToFloat": NumberFunction(_real, lambda x: Bounds(float(x.low), float(x.high))),
    "IntTrueDiv": _QUOTIENT,
    "FloatTrueDiv": _QUOTIENT,
    "FloorDiv": _FLOORED_QUOTIENT,
    "CleanDiv": _FLOORED_QUOTIENT,
    "Mod": _REMAINDER,
    "PythonMod": _REMAINDER,
    "FloatMod": NumberFunction(_float_remainder, _float_remainder_bounds),
    "Pow": NumberFunction(_power, _power_bounds, is_exact=False),
    "FloatPow": NumberFunction(_power, _power_bounds, is_exact=False),
    "PowByNatural": NumberFunction(_power_of_two, _power_of_two_bounds, is_exact=False),
    "FloatSqrt": _rising(torch.sqrt, math.sqrt),
    "FloatExp": _rising(torch.exp, math.exp),
    "FloatLog": _rising(torch.log, math.log),
    "FloatLog2": _rising(torch.log2, math.log2),
    "FloatTanh": _rising(torch.tanh, math.tanh),
    "FloatCos": _swinging(torch.cos, 1.0),
    "FloatSin": _swinging(torch.sin, 1.0),
    "FloatTan": _swinging(torch.tan, math.inf),
}


def is_exact(expression: Any) -> bool:
    """Whether kernels compute every bit of an expression as Python does, so that equal numbers are equal there."""
    computed = [part for part in sympy.preorder_traversal(expression) if not part.is_Atom]
    functions = [NUMBER_FUNCTIONS.get(type(part).__name__) for part in computed]
    return all(function is not None and function.is_exact for function in functions)
