"""Rows that look at the parts of a number, such as its sign, or choose between numbers."""

from __future__ import annotations

import math
from typing import Any

import torch

from opwright.ir.expressions.expression import Expression, apply
from opwright.lowering.pointwise.row import ONE_OPERAND, TWO_OPERANDS, Pointwise, function_rule, like

aten = torch.ops.aten


def _sign_bit(x: Expression) -> Expression:
    zero = like(x, 0)
    return apply("less", apply("copysign", like(x, 1), x) if x.dtype.is_floating else x, zero)


def _is_finite(x: Expression) -> Expression:
    return apply("less", apply("abs", x), like(x, math.inf))


def _equals(bound: float) -> Any:
    return lambda x: apply("equal", x, like(x, bound))


def _angle(x: Expression) -> Expression:
    """Of a real number: π where it is negative, else 0; NaN stays."""
    of_sign = apply("where", apply("less", x, like(x, 0)), like(x, math.pi), like(x, 0))
    return apply("where", apply("is_nan", x), x, of_sign)


def _unless_nan(choice: str) -> Any:
    """The larger or smaller of two numbers, or the one that is not NaN."""

    def rule(x: Expression, y: Expression) -> Expression:
        if not x.dtype.is_floating:
            return apply(choice, x, y)
        chosen = apply("where", apply("is_nan", y), x, apply(choice, x, y))
        return apply("where", apply("is_nan", x), y, chosen)

    return rule


PARTS_ROWS: dict[Any, Pointwise] = {
    aten.copysign: Pointwise(TWO_OPERANDS, function_rule("copysign")),
    aten.signbit: Pointwise(ONE_OPERAND, _sign_bit, compares=True, integral=True),
    aten.isfinite: Pointwise(ONE_OPERAND, _is_finite, compares=True),
    aten.isposinf: Pointwise(ONE_OPERAND, _equals(math.inf), compares=True),
    aten.isneginf: Pointwise(ONE_OPERAND, _equals(-math.inf), compares=True),
    aten.angle: Pointwise(ONE_OPERAND, _angle),
    aten.fmax: Pointwise(TWO_OPERANDS, _unless_nan("maximum"), integral=True),
    aten.fmin: Pointwise(TWO_OPERANDS, _unless_nan("minimum"), integral=True),
    aten.hypot: Pointwise(TWO_OPERANDS, function_rule("hypot")),
}
