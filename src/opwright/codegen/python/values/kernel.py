"""Scalar expressions of a kernel as expressions of whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from opwright.codegen.infix import TIGHTEST, Spelled, postfix
from opwright.codegen.python.values.calls import spell_number
from opwright.codegen.python.values.templates import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    INTEGER_DIVISION,
    PREFIX,
    RELU,
    TEMPLATES,
    TENSORS_ONLY,
)
from opwright.ir.expressions.conversion import Scalar
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, Local
from opwright.ir.program import Axis


@dataclass(frozen=True, slots=True)
class Value:
    """An expression that broadcasts against the axes of a kernel.

    Attributes:
        spelled: Its text.
        dtype: What it holds.
        axes: The positions of the axes it extends along.
        rank: How many of the last axes it has a dimension for.
        is_number: Whether it is a Python number instead of a tensor.
        is_fresh: Whether it has memory of its own.
    """

    spelled: Spelled
    dtype: DType
    axes: frozenset[int] = frozenset()
    rank: int = 0
    is_number: bool = False
    is_fresh: bool = False


@dataclass(slots=True)
class KernelSpeller:
    """Spells the expressions of one kernel.

    Attributes:
        axes: The kernel's axes.
        load: Spells a load against the axes.
        scalar: Spells a number as a tensor without dimensions.
        locals: The values that are bound so far.
    """

    axes: Sequence[Axis]
    load: Callable[[Load, Sequence[Axis]], Value]
    scalar: Callable[[Value], Spelled]
    locals: dict[str, Value] = field(default_factory=dict)

    def spell(self, expression: Expression) -> Value:
        """Write an expression."""
        match expression:
            case Literal(value, dtype):
                return _number(value, dtype)
            case Load():
                return self.load(expression, self.axes)
            case Local(name):
                return self.locals[name]
            case Cast(operand, dtype):
                return self._cast(self.spell(operand), dtype)
            case Apply():
                return self._apply(expression)
            case _:
                assert_never(expression)

    def _cast(self, operand: Value, dtype: DType) -> Value:
        spelled = postfix(f".to(torch.{dtype.value})").fill([self._tensor(operand).spelled])
        return replace(operand, spelled=spelled, dtype=dtype, is_number=False, is_fresh=True)

    def _apply(self, expression: Apply) -> Value:
        bounded = self._clamp(expression)
        if bounded is not None:
            return bounded
        operands = [self.spell(operand) for operand in expression.operands]
        needed = TENSORS_ONLY.get(expression.function, ())
        operands = [self._tensor(v) if position in needed else v for position, v in enumerate(operands)]
        chosen = operands[1:] if expression.function == "where" else operands
        if all(operand.is_number for operand in chosen):
            operands[-1] = self._tensor(operands[-1])
        if expression.function == "where":
            operands[0] = self._tensor(operands[0])
        is_integer = not (expression.dtype.is_floating or expression.dtype.is_complex)
        is_integer_division = expression.function == "divide" and is_integer
        template = INTEGER_DIVISION if is_integer_division else TEMPLATES[expression.function]
        return _joined(template.fill([v.spelled for v in operands]), operands, expression.dtype)

    def _clamp(self, expression: Apply) -> Value | None:
        """A bound that is a number: `torch.clamp` keeps the dtype, and NaN; None if there is no such bound."""
        x, low, high = _bounds(expression)
        if low is None and high is None:
            return None
        value = self._tensor(self.spell(x))
        if low is None:
            template, bounds = AT_MOST, [high]
        elif high is not None:
            template, bounds = BETWEEN, [low, high]
        elif expression.function == "maximum" and low.value == 0:
            template, bounds = RELU, []
        else:
            template, bounds = AT_LEAST, [low]
        numbers = [_number(bound.value, bound.dtype).spelled for bound in bounds if bound is not None]
        return _joined(template.fill([value.spelled, *numbers]), [value], expression.dtype)

    def _tensor(self, value: Value) -> Value:
        if not value.is_number:
            return value
        return replace(value, spelled=self.scalar(value), is_number=False, is_fresh=True)


def _bounds(expression: Expression) -> tuple[Expression, Literal | None, Literal | None]:
    """Take an expression apart into what is bounded, from below, and from above."""
    match expression:
        case Apply("minimum" | "at_most", (x, Literal() as high)) | Apply("minimum", (Literal() as high, x)):
            inner, low, higher = _bounds(x)
            return (inner, low, high) if low is not None and higher is None else (x, None, high)
        case Apply("maximum" | "at_least", (x, Literal() as low)) | Apply("maximum", (Literal() as low, x)):
            return x, low, None
        case _:
            return expression, None, None


def _number(value: Scalar, dtype: DType) -> Value:
    if dtype is DType.BOOL:
        text = str(bool(value))
    elif dtype.is_complex:
        text = f"complex({spell_number(value.real)}, {spell_number(value.imag)})"
    elif dtype.is_floating:
        text = spell_number(float(value.real))
    else:
        text = str(int(value.real))
    return Value(Spelled(text, PREFIX if text.startswith("-") else TIGHTEST), dtype, is_number=True)


def _joined(spelled: Spelled, operands: Sequence[Value], dtype: DType) -> Value:
    axes = frozenset(axis for operand in operands for axis in operand.axes)
    return Value(spelled, dtype, axes, max(operand.rank for operand in operands), is_fresh=True)
