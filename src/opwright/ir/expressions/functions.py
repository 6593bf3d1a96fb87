"""The scalar functions a kernel can apply: one row each, with the meaning that the interpreter gives them.

Backends spell these names in tables of their own. `result` gives the dtype of the result: "same" as the last operand,
"bool", the dtype of its "real" part, or the "complex" dtype made of it. NaN and signed zeros behave as in torch. On
integers, `divide` rounds towards zero and the roundings do nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opwright.ir.expressions.dtype import DType

Array = Any


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A row of the table."""

    arity: int
    meaning: Callable[..., Array]
    result: str = "same"
    template: str | None = None  # how a formula shows it, e.g. "{} + {}"; None: name(operands)

    def result_dtype(self, operand: DType) -> DType:
        """The dtype of the result, given that of the last operand."""
        return {"same": operand, "bool": DType.BOOL, "real": operand.real, "complex": operand.complex}[self.result]


def _is_real(x: Array) -> bool:
    return np.asarray(x).dtype.kind == "f"


def _on_reals(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x) if _is_real(x) else x


def _divide(x: Array, y: Array) -> Array:
    return np.divide(x, y) if np.asarray(x).dtype.kind in "fc" else (x - np.fmod(x, y)) // y


def _remainder(x: Array, y: Array) -> Array:
    """The remainder with the sign of `y`; a zero keeps the sign of `x`, unlike NumPy's."""
    remainder = np.fmod(x, y)
    return np.where((remainder != 0) & ((remainder < 0) != (y < 0)), remainder + y, remainder)


def _power(x: Array, y: Array) -> Array:
    """On integers, a negative exponent gives the integral part of the reciprocal, and zero for zero."""
    if np.asarray(x).dtype.kind in "fc":
        return np.power(x, y)
    power = np.power(x, abs(y))
    return np.where((y >= 0) | (abs(x) == 1), power, np.zeros_like(power))


def _complex(x: Array, y: Array) -> Array:
    """X + iy; adding them up would make a NaN of 0·∞."""
    z = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), np.result_type(np.asarray(x).dtype, np.complex64))
    z.real, z.imag = x, y
    return z


def _sign(x: Array) -> Array:
    return np.where(x > 0, 1, np.where(x < 0, -1, 0)).astype(x.dtype)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _shift_left(x: Array, y: Array) -> Array:
    """Zero where all bits are shifted out."""
    outside = (y < 0) | (y >= 8 * x.dtype.itemsize)
    return np.where(outside, 0, np.left_shift(x, np.where(outside, 0, y))).astype(x.dtype)


def _shift_right(x: Array, y: Array) -> Array:
    """Zero or minus one, by the sign, where all bits are shifted out."""
    last = 8 * x.dtype.itemsize - 1
    out = (y < 0) | (y > last)
    shifted = np.right_shift(x, np.where(out, last, y)).astype(x.dtype)
    return np.where(out, np.zeros_like(x), shifted) if x.dtype.kind == "u" else shifted


def _elementwise(function: Callable[[float], float]) -> Callable[[Array], Array]:
    vectorised = np.vectorize(function, otypes=[np.float64])

    def apply(x: Array) -> Array:
        return vectorised(x).astype(np.asarray(x).dtype) if np.size(x) else np.asarray(x)

    return apply


FUNCTIONS: dict[str, ScalarFunction] = {
    # arithmetic
    "add": ScalarFunction(2, np.add, template="{} + {}"),
    "subtract": ScalarFunction(2, np.subtract, template="{} - {}"),
    "multiply": ScalarFunction(2, np.multiply, template="{} * {}"),
    "divide": ScalarFunction(2, _divide, template="{} / {}"),
    "negate": ScalarFunction(1, np.negative, template="-{}"),
    "remainder": ScalarFunction(2, _remainder),
    "fmod": ScalarFunction(2, np.fmod),
    "minimum": ScalarFunction(2, np.minimum),
    "maximum": ScalarFunction(2, np.maximum),
    "pow": ScalarFunction(2, _power),
    "hypot": ScalarFunction(2, np.hypot),
    "copysign": ScalarFunction(2, np.copysign),
    "abs": ScalarFunction(1, np.abs, "real"),
    "sign": ScalarFunction(1, _sign),
    "sqrt": ScalarFunction(1, np.sqrt),
    "rsqrt": ScalarFunction(1, lambda x: 1 / np.sqrt(x)),
    "reciprocal": ScalarFunction(1, lambda x: 1 / x, template="1 / {}"),
    "floor": ScalarFunction(1, _on_reals(np.floor)),
    "ceil": ScalarFunction(1, _on_reals(np.ceil)),
    "trunc": ScalarFunction(1, _on_reals(np.trunc)),
    "round": ScalarFunction(1, _on_reals(np.rint)),
    # exponentials
    "exp": ScalarFunction(1, np.exp),
    "exp2": ScalarFunction(1, np.exp2),
    "expm1": ScalarFunction(1, np.expm1),
    "log": ScalarFunction(1, np.log),
    "log2": ScalarFunction(1, np.log2),
    "log10": ScalarFunction(1, np.log10),
    "log1p": ScalarFunction(1, np.log1p),
    "sigmoid": ScalarFunction(1, _sigmoid),
    # circular and hyperbolic
    "sin": ScalarFunction(1, np.sin),
    "cos": ScalarFunction(1, np.cos),
    "tan": ScalarFunction(1, np.tan),
    "asin": ScalarFunction(1, np.arcsin),
    "acos": ScalarFunction(1, np.arccos),
    "atan": ScalarFunction(1, np.arctan),
    "atan2": ScalarFunction(2, np.arctan2),
    "sinh": ScalarFunction(1, np.sinh),
    "cosh": ScalarFunction(1, np.cosh),
    "tanh": ScalarFunction(1, np.tanh),
    "asinh": ScalarFunction(1, np.arcsinh),
    "acosh": ScalarFunction(1, np.arccosh),
    "atanh": ScalarFunction(1, np.arctanh),
    "erf": ScalarFunction(1, _elementwise(math.erf)),
    "erfc": ScalarFunction(1, _elementwise(math.erfc)),
    # bits of integers
    "bitwise_and": ScalarFunction(2, np.bitwise_and),
    "bitwise_or": ScalarFunction(2, np.bitwise_or),
    "bitwise_xor": ScalarFunction(2, np.bitwise_xor),
    "bitwise_not": ScalarFunction(1, np.bitwise_not),
    "shift_left": ScalarFunction(2, _shift_left),
    "shift_right": ScalarFunction(2, _shift_right),
    # complex
    "complex": ScalarFunction(2, _complex, "complex"),
    "real": ScalarFunction(1, np.real, "real"),
    "imag": ScalarFunction(1, np.imag, "real"),
    "conj": ScalarFunction(1, np.conj),
    "angle": ScalarFunction(1, np.angle, "real"),
    # truth
    "less": ScalarFunction(2, np.less, "bool", "{} < {}"),
    "less_equal": ScalarFunction(2, np.less_equal, "bool", "{} <= {}"),
    "greater": ScalarFunction(2, np.greater, "bool", "{} > {}"),
    "greater_equal": ScalarFunction(2, np.greater_equal, "bool", "{} >= {}"),
    "equal": ScalarFunction(2, np.equal, "bool", "{} == {}"),
    "not_equal": ScalarFunction(2, np.not_equal, "bool", "{} != {}"),
    "logical_and": ScalarFunction(2, np.logical_and, "bool", "{} & {}"),
    "logical_or": ScalarFunction(2, np.logical_or, "bool", "{} | {}"),
    "logical_xor": ScalarFunction(2, np.logical_xor, "bool", "{} ^ {}"),
    "logical_not": ScalarFunction(1, np.logical_not, "bool", "!{}"),
    "is_nan": ScalarFunction(1, np.isnan, "bool"),
    "is_infinite": ScalarFunction(1, np.isinf, "bool"),
    "where": ScalarFunction(3, np.where, template="{} ? {} : {}"),
}
