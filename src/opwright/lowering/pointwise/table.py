"""Element-wise operations: one row for each core ATen operation, saying which scalar expression it is.

A rule takes the operands as scalar expressions, already converted to the dtype the operation computes in, and the
operation's other arguments by name. The dtype of the computation follows torch's promotion rules (promotion.py).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Literal, apply
from opwright.lowering.pointwise.integers import (
    INTEGER_ROWS,
    floored_quotient,
    integer_power,
    remainder,
    truncated_quotient,
    truncated_remainder,
)
from opwright.lowering.pointwise.parts import PARTS_ROWS
from opwright.lowering.pointwise.row import (
    ONE_OPERAND,
    TWO_OPERANDS,
    Pointwise,
    comparison,
    function_rule,
    is_number,
    like,
    scaled,
    truth_row,
    unary,
)

aten = torch.ops.aten


def _add(x: Expression, y: Expression, alpha: Any = 1) -> Expression:
    return apply("logical_or" if x.dtype is DType.BOOL else "add", x, scaled(y, alpha))


def _subtract(x: Expression, y: Expression, alpha: Any = 1) -> Expression:
    return apply("subtract", x, scaled(y, alpha))


def _multiply(x: Expression, y: Expression) -> Expression:
    return apply("logical_and" if x.dtype is DType.BOOL else "multiply", x, y)


def _reversed_subtract(x: Expression, y: Expression, alpha: Any = 1) -> Expression:
    return apply("subtract", y, scaled(x, alpha))


def _divide(x: Expression, y: Expression, rounding_mode: str | None = None) -> Expression | None:
    if rounding_mode == "floor":
        return _floor_divide(x, y)
    if not x.dtype.real.is_floating:
        return truncated_quotient(x, y)
    quotient = apply("divide", x, y)
    return apply("trunc", quotient) if rounding_mode == "trunc" else quotient


def _floor_divide(x: Expression, y: Expression) -> Expression | None:
    """Torch's float floor division: exact where x/y rounds up to the next integer (c10/util/generic_math.h)."""
    if not x.dtype.real.is_floating:
        return floored_quotient(x, y)
    modulus = apply("fmod", x, y)
    quotient = apply("divide", apply("subtract", x, modulus), y)
    zero, one = like(x, 0), like(x, 1)
    opposite = apply("not_equal", apply("less", y, zero), apply("less", modulus, zero))
    lowered = apply("logical_and", apply("not_equal", modulus, zero), opposite)
    quotient = apply("where", lowered, apply("subtract", quotient, one), quotient)
    floor = apply("floor", quotient)
    closer = apply("greater", apply("subtract", quotient, floor), like(x, 0.5))
    rounded = apply("where", closer, apply("add", floor, one), floor)
    signed_zero = apply("multiply", apply("divide", x, y), zero)
    result = apply("where", apply("equal", quotient, zero), signed_zero, rounded)
    return apply("where", apply("equal", y, zero), apply("divide", x, y), result)


def _pow(x: Expression, y: Expression) -> Expression | None:
    """The exponents that torch special-cases (aten/src/ATen/native/cpu/PowKernel.cpp), then the general power."""
    if not x.dtype.real.is_floating:
        return integer_power(x, y)
    one = like(x, 1)
    if is_number(y, 0):
        return one
    if is_number(y, 1):
        return x
    if is_number(y, 0.5):
        return apply("sqrt", x)
    if is_number(y, 2):
        return apply("multiply", x, x)
    if is_number(y, 3):
        return apply("multiply", apply("multiply", x, x), x)
    if is_number(y, -0.5):
        return apply("divide", one, apply("sqrt", x))
    if is_number(y, -1):
        return apply("divide", one, x)
    if is_number(y, -2):
        return apply("divide", one, apply("multiply", x, x))
    return apply("pow", x, y)


def _round(x: Expression, decimals: int = 0) -> Expression:
    """Half to even; with decimals, of the number scaled by a power of ten, as in UnaryOpsKernel.cpp of ATen."""
    if decimals == 0:
        return apply("round", x)
    ten = like(x, 10.0 ** abs(decimals))
    scale, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    return apply(back, apply("round", apply(scale, x, ten)), ten)


def _clamp(x: Expression, min: Any = None, max: Any = None) -> Expression:
    if min is not None:
        x = apply("maximum", x, like(x, min))
    return x if max is None else apply("minimum", x, like(x, max))


def _elu(x: Expression, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Expression:
    """Where x > 0: scale·x, else scale·alpha·(exp(input_scale·x) − 1)."""
    negative = scaled(scaled(apply("expm1", scaled(x, input_scale)), alpha), scale)
    return apply("where", apply("greater", x, like(x, 0)), scaled(x, scale), negative)


def _leaky_relu(x: Expression, negative_slope: float = 0.01) -> Expression:
    return apply("where", apply("greater", x, like(x, 0)), x, scaled(x, negative_slope))


def _gelu(x: Expression, approximate: str = "none") -> Expression:
    """x·Φ(x); Φ by erf, or by the tanh approximation (Hendrycks and Gimpel 2016)."""
    half_x, one = apply("multiply", x, like(x, 0.5)), like(x, 1)
    if approximate == "none":
        return apply("multiply", half_x, apply("add", one, apply("erf", scaled(x, math.sqrt(0.5)))))
    cubed = apply("multiply", apply("multiply", x, x), x)
    inner = scaled(apply("add", x, scaled(cubed, 0.044715)), math.sqrt(2 / math.pi))
    return apply("multiply", half_x, apply("add", one, apply("tanh", inner)))


def _identity(x: Expression) -> Expression:
    return x


def _nothing() -> Expression:
    """Uninitialised memory, which is written before it is read."""
    return Literal(0, DType.INT64)


POINTWISE: dict[Any, Pointwise] = {
    # arithmetic
    aten.add: Pointwise(TWO_OPERANDS, _add, integral=True, truth=True),
    aten.sub: Pointwise(TWO_OPERANDS, _subtract, integral=True),
    aten.rsub: Pointwise(TWO_OPERANDS, _reversed_subtract, integral=True),
    aten.mul: Pointwise(TWO_OPERANDS, _multiply, integral=True, truth=True),
    aten.div: Pointwise(TWO_OPERANDS, _divide, integral=True),
    aten.true_divide: Pointwise(TWO_OPERANDS, _divide),
    aten.floor_divide: Pointwise(TWO_OPERANDS, _floor_divide, integral=True),
    aten.neg: unary("negate", integral=True),
    aten._neg_view: unary("negate"),  # what the imaginary part of a conjugate is
    aten.abs: unary("abs", integral=True),
    aten.sign: unary("sign", integral=True),
    aten.reciprocal: unary("reciprocal"),
    aten.sqrt: unary("sqrt"),
    aten.rsqrt: unary("rsqrt"),
    aten.square: Pointwise(ONE_OPERAND, lambda x: apply("multiply", x, x), integral=True),
    aten.pow: Pointwise(("self", "exponent"), _pow, integral=True),
    aten.remainder: Pointwise(TWO_OPERANDS, remainder, integral=True),
    aten.fmod: Pointwise(TWO_OPERANDS, truncated_remainder, integral=True),
    aten.maximum: Pointwise(TWO_OPERANDS, function_rule("maximum"), integral=True),
    aten.minimum: Pointwise(TWO_OPERANDS, function_rule("minimum"), integral=True),
    aten.floor: unary("floor"),
    aten.ceil: unary("ceil"),
    aten.trunc: unary("trunc"),
    aten.round: Pointwise(ONE_OPERAND, _round),
    # exponentials
    aten.exp: unary("exp"),
    aten.exp2: unary("exp2"),
    aten.expm1: unary("expm1"),
    aten.log: unary("log"),
    aten.log2: unary("log2"),
    aten.log10: unary("log10"),
    aten.log1p: unary("log1p"),
    aten.sigmoid: unary("sigmoid"),
    # circular and hyperbolic
    aten.sin: unary("sin"),
    aten.cos: unary("cos"),
    aten.tan: unary("tan"),
    aten.asin: unary("asin"),
    aten.acos: unary("acos"),
    aten.atan: unary("atan"),
    aten.atan2: Pointwise(TWO_OPERANDS, function_rule("atan2")),
    aten.sinh: unary("sinh"),
    aten.cosh: unary("cosh"),
    aten.tanh: unary("tanh"),
    aten.asinh: unary("asinh"),
    aten.acosh: unary("acosh"),
    aten.atanh: unary("atanh"),
    aten.erf: unary("erf"),
    aten.erfc: unary("erfc"),
    # activations
    aten.relu: Pointwise(ONE_OPERAND, lambda x: _clamp(x, min=0), integral=True),
    aten.hardtanh: Pointwise(ONE_OPERAND, lambda x, min_val=-1, max_val=1: _clamp(x, min=min_val, max=max_val)),
    aten.clamp: Pointwise(ONE_OPERAND, _clamp, integral=True),
    aten.elu: Pointwise(ONE_OPERAND, _elu),
    aten.leaky_relu: Pointwise(ONE_OPERAND, _leaky_relu),
    aten.gelu: Pointwise(ONE_OPERAND, _gelu),
    # truth
    aten.lt: comparison("less"),
    aten.le: comparison("less_equal"),
    aten.gt: comparison("greater"),
    aten.ge: comparison("greater_equal"),
    aten.eq: comparison("equal", truth=True),
    aten.ne: comparison("not_equal", truth=True),
    aten.logical_and: truth_row("logical_and"),
    aten.logical_or: truth_row("logical_or"),
    aten.logical_xor: truth_row("logical_xor"),
    aten.logical_not: truth_row("logical_not", ONE_OPERAND),
    aten.isnan: Pointwise(ONE_OPERAND, function_rule("is_nan"), compares=True),
    aten.isinf: Pointwise(ONE_OPERAND, function_rule("is_infinite"), compares=True),
    aten.where: Pointwise(
        ("condition", "self", "other"), function_rule("where"), selects=True, integral=True, truth=True
    ),
    # the same value, perhaps in another dtype
    aten.clone: Pointwise(ONE_OPERAND, _identity, integral=True, truth=True),
    aten.to: Pointwise(ONE_OPERAND, _identity, integral=True, truth=True),
    aten._to_copy: Pointwise(ONE_OPERAND, _identity, integral=True, truth=True),
    aten.conj_physical: Pointwise(ONE_OPERAND, _identity, integral=True, truth=True),
    aten.positive: Pointwise(ONE_OPERAND, _identity, integral=True, truth=True),
    # one value everywhere
    aten.scalar_tensor: Pointwise(("s",), _identity, integral=True, truth=True),
    aten.fill: Pointwise(("value",), _identity, integral=True, truth=True),
    aten.copy: Pointwise(("src",), _identity, integral=True, truth=True),
    aten.full: Pointwise(("fill_value",), _identity, integral=True, truth=True),
    aten.full_like: Pointwise(("fill_value",), _identity, integral=True, truth=True),
    aten.empty_permuted: Pointwise((), _nothing, integral=True, truth=True),
    **INTEGER_ROWS,
    **PARTS_ROWS,
}
