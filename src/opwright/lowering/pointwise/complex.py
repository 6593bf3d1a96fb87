"""Element-wise operations that have a complex operand or result: rows as in lowering/pointwise/table.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Literal, apply, cast
from opwright.lowering.pointwise.row import Pointwise
from opwright.lowering.pointwise.table import POINTWISE
from opwright.tracing.graph import value_of

aten = torch.ops.aten
_ONE, _TWO = ("self",), ("self", "other")

# Operations whose rule uses only scalar functions that complex numbers have too.
_AS_FOR_REALS = (
    *(aten.mul, aten.div, aten.neg, aten.square, aten.pow),
    *(aten.sqrt, aten.exp, aten.log, aten.sigmoid, aten.sin, aten.cos, aten.tanh),
    *(aten.eq, aten.ne, aten.where, aten.logical_and, aten.logical_or, aten.logical_xor, aten.logical_not),
    *(aten.clone, aten.to, aten._to_copy, aten.positive, aten.copy),
    *(aten.scalar_tensor, aten.fill, aten.full, aten.full_like, aten.empty_permuted),
)


def _function(name: str) -> Callable[..., Expression]:
    return lambda *operands, **_: apply(name, *operands)


def _real_part(name: str) -> Pointwise:
    """A function with a real result; its operand decides the dtype of the computation."""
    return Pointwise(_ONE, _function(name), compares=True)


def _add(x: Expression, y: Expression, alpha: Any = 1) -> Expression:
    """The sum x + alpha·y, multiplied also if alpha is 1: an infinite y then gives NaN, as in torch."""
    return apply("add", x, apply("multiply", y, cast(Literal(alpha, DType.COMPLEX128), y.dtype)))


def _subtract(x: Expression, y: Expression, alpha: Any = 1) -> Expression:
    return _add(x, y, -alpha)


def _reversed_subtract(x: Expression, y: Expression, alpha: Any = 1) -> Expression:
    return _subtract(y, x, alpha)


def _reciprocal(z: Expression) -> Expression:
    return apply("divide", cast(Literal(1, z.dtype.real), z.dtype), z)


def _polar(length: Expression, angle: Expression) -> Expression:
    return apply(
        "complex",
        apply("multiply", length, apply("cos", angle)),
        apply("multiply", length, apply("sin", angle)),
    )


def _sgn(z: Expression) -> Expression:
    """Parts divided by the length one by one: its reciprocal would overflow for the smallest numbers."""
    length = apply("abs", z)
    zero = Literal(0, length.dtype)
    parts = (
        apply("where", apply("equal", length, zero), zero, apply("divide", apply(part, z), length))
        for part in ("real", "imag")
    )
    return apply("complex", *parts)


COMPLEX: dict[Any, Pointwise] = {
    **{packet: POINTWISE[packet] for packet in _AS_FOR_REALS},
    aten.add: Pointwise(_TWO, _add),
    aten.sub: Pointwise(_TWO, _subtract),
    aten.rsub: Pointwise(_TWO, _reversed_subtract),
    aten.reciprocal: Pointwise(_ONE, _reciprocal),
    aten._conj: Pointwise(_ONE, _function("conj")),
    aten.conj_physical: Pointwise(_ONE, _function("conj")),
    aten.abs: _real_part("abs"),
    aten.sgn: Pointwise(_ONE, _sgn),
    aten.angle: _real_part("angle"),
    aten.complex: Pointwise(("real", "imag"), _function("complex"), compares=True),
    aten.polar: Pointwise(("abs", "angle"), _polar, compares=True),
}

_PARTS = (_real_part("real"), _real_part("imag"))


@dataclass(frozen=True, slots=True)
class Part:
    """The real or imaginary part of a complex number.

    Attributes:
        pair: The `view_as_real` whose last dimension it is an element of.
        whole: The complex number.
        row: Computes the part from the whole.
    """

    pair: Node
    whole: Node
    row: Pointwise


def selected_part(node: Node) -> Part | None:
    """Which part of a complex number a node selects; torch writes `z.imag` as `view_as_real(z).select(-1, 1)`."""
    if node.target is not aten.select.int:
        return None
    pair, dimension, index = (argument for argument in node.args)
    if not isinstance(pair, Node) or pair.target is not aten.view_as_real.default:
        return None
    rank = value_of(pair).dim()
    whole = pair.args[0]
    if not (isinstance(whole, Node) and isinstance(dimension, int) and isinstance(index, int)):
        return None
    return Part(pair, whole, _PARTS[index % 2]) if dimension % rank == rank - 1 else None
