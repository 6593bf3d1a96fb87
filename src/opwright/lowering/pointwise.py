"""Element-wise operations: one row for each core ATen operation, saying which scalar expression it is.

A rule takes the operands as scalar expressions, already converted to the dtype the operation computes in, and the
operation's other arguments by name. What it computes in follows torch's promotion rules (lowering/promotion.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from opwright.ir.dtype import DType
from opwright.ir.expression import Expression, Literal, apply, cast

aten = torch.ops.aten
Rule = Callable[..., Expression]


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A row: which arguments are operands, and the rule.

    Attributes:
        operands: Names of the schema arguments that are tensors or numbers taking part in the computation.
        rule: Makes the expression; gets the other arguments by name.
        compares: Whether operands are promoted among themselves, since a bool result does not say what to compute in.
        selects: Whether the first operand is a condition, kept as bool.
        integral: Whether the rule is right for integers too; what is not becomes a library call.
        truth: Whether the rule is right for bool too.
    """

    operands: tuple[str, ...]
    rule: Rule
    compares: bool = False
    selects: bool = False
    integral: bool = False
    truth: bool = False

    def computes_in(self, dtype: DType) -> bool:
        """Whether the rule is right for operands of a dtype."""
        if dtype.is_floating or dtype.is_complex:
            return True
        return self.truth if dtype is DType.BOOL else self.integral


def _function(name: str) -> Rule:
    return lambda *operands, **_: apply(name, *operands)


def _like(operand: Expression, value: float) -> Expression:
    """A number of the operand's dtype."""
    return cast(Literal(value, DType.FLOAT64), operand.dtype)


def _is(expression: Expression, value: float) -> bool:
    return isinstance(expression, Literal) and expression.value == value


def _scaled(operand: Expression, factor: Any) -> Expression:
    return operand if factor == 1 else apply("multiply", operand, _like(operand, factor))


def _add(x: Expression, y: Expression, alpha: Any = 1) -> Expression:
    return apply("logical_or" if x.dtype is DType.BOOL else "add", x, _scaled(y, alpha))


def _subtract(x: Expression, y: Expression, alpha: Any = 1) -> Expression:
    return apply("subtract", x, _scaled(y, alpha))


def _multiply(x: Expression, y: Expression) -> Expression:
    return apply("logical_and" if x.dtype is DType.BOOL else "multiply", x, y)


def _reversed_subtract(x: Expression, y: Expression, alpha: Any = 1) -> Expression:
    return apply("subtract", y, _scaled(x, alpha))


def _divide(x: Expression, y: Expression, rounding_mode: str | None = None) -> Expression:
    if rounding_mode == "floor":
        return _floor_divide(x, y)
    quotient = apply("divide", x, y)
    return apply("trunc", quotient) if rounding_mode == "trunc" and x.dtype.is_floating else quotient


def _floor_divide(x: Expression, y: Expression) -> Expression:
    """Torch's float floor division: exact where x/y rounds up to the next integer (c10/util/generic_math.h)."""
    modulus = apply("fmod", x, y)
    quotient = apply("divide", apply("subtract", x, modulus), y)
    zero, one = _like(x, 0), _like(x, 1)
    opposite = apply("not_equal", apply("less", y, zero), apply("less", modulus, zero))
    lowered = apply("logical_and", apply("not_equal", modulus, zero), opposite)
    quotient = apply("where", lowered, apply("subtract", quotient, one), quotient)
    floor = apply("floor", quotient)
    closer = apply("greater", apply("subtract", quotient, floor), _like(x, 0.5))
    rounded = apply("where", closer, apply("add", floor, one), floor)
    signed_zero = apply("multiply", apply("divide", x, y), zero)
    result = apply("where", apply("equal", quotient, zero), signed_zero, rounded)
    return apply("where", apply("equal", y, zero), apply("divide", x, y), result)


def _pow(x: Expression, y: Expression) -> Expression:
    """The exponents torch treats apart (aten/src/ATen/native/cpu/PowKernel.cpp), then the general power."""
    one = _like(x, 1)
    if _is(y, 0.5):
        return apply("sqrt", x)
    if _is(y, 2):
        return apply("multiply", x, x)
    if _is(y, 3):
        return apply("multiply", apply("multiply", x, x), x)
    if _is(y, -0.5):
        return apply("divide", one, apply("sqrt", x))
    if _is(y, -1):
        return apply("divide", one, x)
    if _is(y, -2):
        return apply("divide", one, apply("multiply", x, x))
    return apply("pow", x, y)


def _relu(x: Expression) -> Expression:
    return _clamp(x, min=0)


def _clamp(x: Expression, min: Any = None, max: Any = None) -> Expression:
    if min is not None:
        x = apply("maximum", x, _like(x, min))
    return x if max is None else apply("minimum", x, _like(x, max))


def _elu(x: Expression, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Expression:
    """Where x > 0: scale·x, else scale·alpha·(exp(input_scale·x) − 1)."""
    negative = _scaled(_scaled(apply("expm1", _scaled(x, input_scale)), alpha), scale)
    return apply("where", apply("greater", x, _like(x, 0)), _scaled(x, scale), negative)


def _leaky_relu(x: Expression, negative_slope: float = 0.01) -> Expression:
    return apply("where", apply("greater", x, _like(x, 0)), x, _scaled(x, negative_slope))


def _gelu(x: Expression, approximate: str = "none") -> Expression:
    """x·Φ(x); Φ by erf, or by the tanh approximation (Hendrycks and Gimpel 2016)."""
    half_x, one = apply("multiply", x, _like(x, 0.5)), _like(x, 1)
    if approximate == "none":
        return apply("multiply", half_x, apply("add", one, apply("erf", _scaled(x, math.sqrt(0.5)))))
    cubed = apply("multiply", apply("multiply", x, x), x)
    inner = _scaled(apply("add", x, _scaled(cubed, 0.044715)), math.sqrt(2 / math.pi))
    return apply("multiply", half_x, apply("add", one, apply("tanh", inner)))


def _identity(x: Expression, **_: Any) -> Expression:
    return x


def _fill(value: Expression, **_: Any) -> Expression:
    return value


def _nothing(**_: Any) -> Expression:
    """New memory, which is written before anyone reads it."""
    return Literal(0, DType.INT64)


_ONE, _TWO = ("self",), ("self", "other")


def _unary(name: str, integral: bool = False) -> Pointwise:
    return Pointwise(_ONE, _function(name), integral=integral)


def _comparison(name: str, truth: bool = False) -> Pointwise:
    return Pointwise(_TWO, _function(name), compares=True, integral=True, truth=truth)


def _truth(name: str, operands: tuple[str, ...] = _TWO) -> Pointwise:
    def rule(*given: Expression, **_: Any) -> Expression:
        return apply(name, *(cast(operand, DType.BOOL) for operand in given))

    return Pointwise(operands, rule, compares=True, integral=True, truth=True)


POINTWISE: dict[Any, Pointwise] = {
    # arithmetic
    aten.add: Pointwise(_TWO, _add, integral=True, truth=True),
    aten.sub: Pointwise(_TWO, _subtract, integral=True),
    aten.rsub: Pointwise(_TWO, _reversed_subtract, integral=True),
    aten.mul: Pointwise(_TWO, _multiply, integral=True, truth=True),
    aten.div: Pointwise(_TWO, _divide),
    aten.neg: _unary("negate", integral=True),
    aten._neg_view: _unary("negate"),  # what the imaginary part of a conjugate is
    aten.abs: _unary("abs", integral=True),
    aten.sign: _unary("sign", integral=True),
    aten.reciprocal: _unary("reciprocal"),
    aten.sqrt: _unary("sqrt"),
    aten.rsqrt: _unary("rsqrt"),
    aten.square: Pointwise(_ONE, lambda x: apply("multiply", x, x), integral=True),
    aten.pow: Pointwise(("self", "exponent"), _pow),
    aten.remainder: Pointwise(_TWO, _function("remainder")),
    aten.fmod: Pointwise(_TWO, _function("fmod")),
    aten.maximum: Pointwise(_TWO, _function("maximum"), integral=True),
    aten.minimum: Pointwise(_TWO, _function("minimum"), integral=True),
    aten.floor: _unary("floor"),
    aten.ceil: _unary("ceil"),
    aten.trunc: _unary("trunc"),
    aten.round: _unary("round"),
    # exponentials
    aten.exp: _unary("exp"),
    aten.exp2: _unary("exp2"),
    aten.expm1: _unary("expm1"),
    aten.log: _unary("log"),
    aten.log2: _unary("log2"),
    aten.log10: _unary("log10"),
    aten.log1p: _unary("log1p"),
    aten.sigmoid: _unary("sigmoid"),
    # circular and hyperbolic
    aten.sin: _unary("sin"),
    aten.cos: _unary("cos"),
    aten.tan: _unary("tan"),
    aten.asin: _unary("asin"),
    aten.acos: _unary("acos"),
    aten.atan: _unary("atan"),
    aten.atan2: Pointwise(_TWO, _function("atan2")),
    aten.sinh: _unary("sinh"),
    aten.cosh: _unary("cosh"),
    aten.tanh: _unary("tanh"),
    aten.asinh: _unary("asinh"),
    aten.acosh: _unary("acosh"),
    aten.atanh: _unary("atanh"),
    aten.erf: _unary("erf"),
    aten.erfc: _unary("erfc"),
    # activations
    aten.relu: Pointwise(_ONE, _relu, integral=True),
    aten.hardtanh: Pointwise(_ONE, lambda x, min_val=-1, max_val=1: _clamp(x, min=min_val, max=max_val)),
    aten.clamp: Pointwise(_ONE, _clamp, integral=True),
    aten.elu: Pointwise(_ONE, _elu),
    aten.leaky_relu: Pointwise(_ONE, _leaky_relu),
    aten.gelu: Pointwise(_ONE, _gelu),
    # truth
    aten.lt: _comparison("less"),
    aten.le: _comparison("less_equal"),
    aten.gt: _comparison("greater"),
    aten.ge: _comparison("greater_equal"),
    aten.eq: _comparison("equal", truth=True),
    aten.ne: _comparison("not_equal", truth=True),
    aten.logical_and: _truth("logical_and"),
    aten.logical_or: _truth("logical_or"),
    aten.logical_xor: _truth("logical_xor"),
    aten.logical_not: _truth("logical_not", _ONE),
    aten.isnan: Pointwise(_ONE, _function("is_nan"), compares=True),
    aten.isinf: Pointwise(_ONE, _function("is_infinite"), compares=True),
    aten.where: Pointwise(("condition", "self", "other"), _function("where"), selects=True, integral=True, truth=True),
    # the same value, perhaps in another dtype
    aten.clone: Pointwise(_ONE, _identity, integral=True, truth=True),
    aten.to: Pointwise(_ONE, _identity, integral=True, truth=True),
    aten._to_copy: Pointwise(_ONE, _identity, integral=True, truth=True),
    aten.conj_physical: Pointwise(_ONE, _identity, integral=True, truth=True),
    aten.positive: Pointwise(_ONE, _identity, integral=True, truth=True),
    # one value everywhere
    aten.scalar_tensor: Pointwise(("s",), _fill, integral=True, truth=True),
    aten.fill: Pointwise(("value",), _fill, integral=True, truth=True),
    aten.copy: Pointwise(("src",), _identity, integral=True, truth=True),
    aten.full: Pointwise(("fill_value",), _fill, integral=True, truth=True),
    aten.full_like: Pointwise(("fill_value",), _fill, integral=True, truth=True),
    aten.empty_permuted: Pointwise((), _nothing, integral=True, truth=True),
}
