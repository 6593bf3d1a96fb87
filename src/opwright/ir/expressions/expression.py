"""Scalar expressions: what a kernel computes for one element.

expression = Literal(value, dtype)              a number
           | Load(buffer, indices, dtype)       one element of a buffer
           | Local(name, dtype)                 a value bound earlier in the same kernel
           | Apply(function, operands, dtype)   a row of ir/expressions/functions.py
           | Cast(operand, dtype)               conversion, as torch converts
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import is_

from opwright.ir.expressions.conversion import Scalar, convert_number
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.exact import exact
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import Integer


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant of the kernel; two are equal if type and bits are: 0.0 is not −0.0."""

    value: Scalar
    dtype: DType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[DType, Hashable]:
        return self.dtype, exact(self.value)


@dataclass(frozen=True, slots=True)
class Load:
    """One element of a buffer; one index per dimension, in axes of the kernel and sizes."""

    buffer: str
    indices: tuple[Integer, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Local:
    """A value bound by an earlier `Let` of the same kernel."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar function of operands."""

    function: str
    operands: tuple[Expression, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion to another dtype."""

    operand: Expression
    dtype: DType


Expression = Literal | Load | Local | Apply | Cast


def apply(function: str, *operands: Expression) -> Expression:
    """Apply a scalar function; its dtype follows from the table."""
    return Apply(function, operands, FUNCTIONS[function].result_dtype(operands[-1].dtype))


def cast(operand: Expression, dtype: DType) -> Expression:
    """Convert, unless it has that dtype already; a literal is converted here and now.

    Half types are converted to and from float32 alone; every other conversion goes through that.
    """
    if operand.dtype is dtype:
        return operand
    if (operand.dtype.is_half or dtype.is_half) and DType.FLOAT32 not in (operand.dtype, dtype):
        return cast(cast(operand, DType.FLOAT32), dtype)
    if isinstance(operand, Literal):
        return _cast_literal(operand, dtype)
    return Cast(operand, dtype)


def _cast_literal(literal: Literal, dtype: DType) -> Expression:
    """A real number keeps more digits than the dtype holds, for sources to show; another conversion rounds them."""
    held = convert_number(literal.value, literal.dtype)
    if dtype.is_floating and literal.dtype.real.is_floating:
        return Literal(held.real, dtype)
    try:
        return Literal(convert_number(held, dtype), dtype)
    except (OverflowError, ValueError):
        return Cast(literal, dtype)


def rewrite_children(expression: Expression, rewrite: Callable[[Expression], Expression]) -> Expression:
    """Rebuild a node with rewritten operands; leaves, and nodes whose operands stay, come back as they are."""
    if isinstance(expression, Apply):
        operands = tuple([rewrite(operand) for operand in expression.operands])
        if all(map(is_, operands, expression.operands)):
            return expression
        return Apply(expression.function, operands, expression.dtype)
    if isinstance(expression, Cast):
        operand = rewrite(expression.operand)
        return expression if operand is expression.operand else Cast(operand, expression.dtype)
    return expression


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands of a node."""
    if isinstance(expression, Apply):
        return expression.operands
    return (expression.operand,) if isinstance(expression, Cast) else ()


def nodes(expression: Expression) -> list[Expression]:
    """A node and all below it, each before its operands, left to right."""
    found: list[Expression] = []
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if isinstance(node, Apply):
            waiting += node.operands[::-1]
        elif isinstance(node, Cast):
            waiting.append(node.operand)
    return found


def leaves(expression: Expression) -> list[Expression]:
    """All leaves below a node, left to right."""
    return [node for node in nodes(expression) if not isinstance(node, Apply | Cast)]
