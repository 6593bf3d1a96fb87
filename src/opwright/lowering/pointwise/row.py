"""Rows of the table of element-wise operations, and the usual kinds of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Literal, apply, cast
from opwright.ir.expressions.integer import Integer

Rule = Callable[..., Expression | None]


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A row: which arguments are operands, and the rule.

    Attributes:
        operands: Names of the schema arguments that are tensors or numbers taking part in the computation.
        rule: Makes the expression; gets the other arguments by name. If it returns None, the operation is a library
            call.
        compares: Whether operands are promoted among themselves, because the result is bool.
        selects: Whether the first operand is a condition, kept as bool.
        integral: Whether the rule is right for integers too; otherwise the operation is a library call.
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


def function_rule(name: str) -> Rule:
    """The rule that applies one scalar function."""
    return lambda *operands: apply(name, *operands)


def like(operand: Expression, value: Any) -> Expression:
    """A number, or a value, of the operand's dtype."""
    if isinstance(value, Expression):
        return cast(value, operand.dtype)
    return cast(Literal(value, DType.INT64 if isinstance(value, int) else DType.FLOAT64), operand.dtype)


def holds(dtype: DType, value: Any) -> bool:
    """Whether a dtype holds a number; if not, torch raises, or the result depends on its version.

    The trace checks floating dtypes and numbers that change from call to call. Anything but a number is held.
    """
    value = value.constant if isinstance(value, Integer) else value
    if dtype.is_floating or dtype.is_complex or dtype is DType.BOOL or not isinstance(value, int | float):
        return True
    limits = torch.iinfo(getattr(torch, dtype.value))
    return limits.min <= value <= limits.max


def is_number(expression: Expression, value: float) -> bool:
    """Whether an expression is a certain number."""
    return isinstance(expression, Literal) and expression.value == value


def scaled(operand: Expression, factor: Any) -> Expression:
    """The product of an operand and a number; by one it is the operand."""
    return operand if factor == 1 else apply("multiply", operand, like(operand, factor))


ONE_OPERAND, TWO_OPERANDS = ("self",), ("self", "other")


def unary(name: str, integral: bool = False) -> Pointwise:
    """A function of one number."""
    return Pointwise(ONE_OPERAND, function_rule(name), integral=integral)


def comparison(name: str, truth: bool = False) -> Pointwise:
    """A relation between two numbers."""
    return Pointwise(TWO_OPERANDS, function_rule(name), compares=True, integral=True, truth=truth)


def truth_row(name: str, operands: tuple[str, ...] = TWO_OPERANDS) -> Pointwise:
    """A function of truth values; a number is true unless it is zero."""

    def rule(*given: Expression) -> Expression:
        return apply(name, *(cast(operand, DType.BOOL) for operand in given))

    return Pointwise(operands, rule, compares=True, integral=True, truth=True)


# Arguments that rules take besides operands.
PARAMETERS = {
    "alpha", "scale", "input_scale", "negative_slope", "approximate", "min", "max", "min_val", "max_val",
    "rounding_mode", "decimals",
}  # fmt: skip
# Arguments that do not affect values, or only the shape and dtype, which the trace has.
WITHOUT_VALUE = {
    "self", "size", "dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "copy",
    "physical_layout",
}  # fmt: skip
