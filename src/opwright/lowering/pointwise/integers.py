"""Rows for integers: bits, shifts, powers and remainders.

Integer division by zero raises in eager, which a kernel cannot do: a divisor must be a plain number; all else is a
library call.
"""

from __future__ import annotations

from typing import Any

import torch

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Literal, apply
from opwright.lowering.pointwise.row import ONE_OPERAND, TWO_OPERANDS, Pointwise, like

aten = torch.ops.aten
_MOST_FACTORS = 64


def _is_safe_divisor(y: Expression) -> bool:
    return isinstance(y, Literal) and y.value not in (0, -1)


def truncated_quotient(x: Expression, y: Expression) -> Expression | None:
    """The integer quotient, rounded towards zero."""
    return apply("divide", x, y) if _is_safe_divisor(y) else None


def floored_quotient(x: Expression, y: Expression) -> Expression | None:
    """The integer quotient, rounded towards minus infinity."""
    if not _is_safe_divisor(y):
        return None
    quotient = apply("divide", x, y)  # one less if there is a remainder and the signs differ; nothing here overflows
    left = apply("not_equal", apply("multiply", quotient, y), x)
    opposite = apply("not_equal", apply("less", x, like(x, 0)), apply("less", y, like(y, 0)))
    return apply("where", apply("logical_and", left, opposite), apply("subtract", quotient, like(x, 1)), quotient)


def remainder(x: Expression, y: Expression) -> Expression | None:
    """The remainder of a floored division, with the sign of the divisor."""
    return apply("remainder", x, y) if x.dtype.real.is_floating or _is_safe_divisor(y) else None


def truncated_remainder(x: Expression, y: Expression) -> Expression | None:
    """The remainder of a division that is rounded towards zero, with the sign of the dividend."""
    if x.dtype.real.is_floating:
        return apply("fmod", x, y)
    quotient = truncated_quotient(x, y)
    return quotient and apply("subtract", x, apply("multiply", quotient, y))


def integer_power(x: Expression, y: Expression) -> Expression | None:
    """A power with a small exponent that is known, by squaring; it wraps around as in torch."""
    if not isinstance(y, Literal) or isinstance(y.value, complex) or not 0 <= y.value <= _MOST_FACTORS:
        return None
    exponent, result, square = int(y.value), like(x, 1), x
    while exponent:
        if exponent % 2:
            result = square if isinstance(result, Literal) else apply("multiply", result, square)
        exponent //= 2
        square = apply("multiply", square, square)
    return result


def _bitwise(name: str) -> Any:
    def rule(*operands: Expression) -> Expression:
        return apply(f"{'logical' if operands[0].dtype is DType.BOOL else 'bitwise'}_{name}", *operands)

    return rule


def _row(operands: tuple[str, ...], rule: Any, truth: bool = True) -> Pointwise:
    def on_integers(*given: Expression) -> Expression | None:
        return None if given[0].dtype.is_floating else rule(*given)

    return Pointwise(operands, on_integers, integral=True, truth=truth)


_AND, _OR, _XOR = (_row(TWO_OPERANDS, _bitwise(name)) for name in ("and", "or", "xor"))
_LEFT, _RIGHT = (
    _row(TWO_OPERANDS, lambda x, y, name=name: apply(name, x, y), truth=False) for name in ("shift_left", "shift_right")
)

INTEGER_ROWS: dict[Any, Pointwise] = {
    aten.bitwise_and: _AND,
    aten.__and__: _AND,
    aten.bitwise_or: _OR,
    aten.__or__: _OR,
    aten.bitwise_xor: _XOR,
    aten.__xor__: _XOR,
    aten.bitwise_not: _row(ONE_OPERAND, _bitwise("not")),
    aten.bitwise_left_shift: _LEFT,
    aten.__lshift__: _LEFT,
    aten.bitwise_right_shift: _RIGHT,
    aten.__rshift__: _RIGHT,
}
