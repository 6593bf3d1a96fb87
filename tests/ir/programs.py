"""Hand-made Programs that the tests of the language share."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Load, Local, apply
from opwright.ir.expressions.integer import Condition, Integer, integer, symbol
from opwright.ir.program import (
    Axis,
    Buffer,
    Call,
    Case,
    Kernel,
    Let,
    Program,
    Reduce,
    Store,
    TensorOperand,
    View,
    size_symbol,
)

F32 = DType.FLOAT32
I0, I1 = symbol("i0"), symbol("i1")


def matrix(name: str, dtype: DType = F32) -> Buffer:
    """A matrix with sizes of its own."""
    return Buffer(name, dtype, (size_symbol(name, 0), size_symbol(name, 1)))


def over(*extents: Integer) -> tuple[Axis, ...]:
    """The axes i0, i1, …"""
    return tuple(Axis(f"i{dimension}", extent) for dimension, extent in enumerate(extents))


def gated() -> Program:
    """Every kind of step: two halves of x as views, a kernel with lets, a matrix product of its result."""
    x, weight, columns = matrix("x"), matrix("weight"), symbol("columns")
    rows = x.shape[0]
    left, right, gate = (Buffer(name, F32, (rows, columns)) for name in ("left", "right", "gate"))
    d0, d1 = symbol("d0"), symbol("d1")
    opening = Let("opening", apply("sigmoid", Load("left", (I0, I1), F32)))
    value = apply("multiply", Local("opening", F32), apply("tanh", Load("right", (I0, I1), F32)))
    return Program(
        name="gated",
        inputs=(x, weight),
        sizes=("columns",),
        steps=(
            View(left, "x", (d0, d1)),
            View(right, "x", (d0, d1 + columns)),
            Kernel("gate", (gate,), over(rows, columns), (opening,), (Store("gate", (I0, I1), value),)),
            Call(
                (Buffer("mixed", F32, (rows, weight.shape[1])),),
                "aten::mm",
                "",
                (TensorOperand("gate"), TensorOperand("weight")),
            ),
        ),
        outputs=("gate", "mixed"),
        guards=(Condition("==", x.shape[1], 2 * columns), Condition("==", weight.shape[0], columns)),
    )


def summed() -> Program:
    """The sum of each row of x."""
    x = matrix("x")
    reduction = Reduce("total", "sum", Load("x", (I0, I1), F32))
    total = Buffer("sums", F32, (x.shape[0],))
    store = Store("sums", (I0,), Local("total", F32))
    kernel = Kernel("sums", (total,), over(*x.shape), (reduction,), (store,), row_axes=1)
    return Program("summed", (x,), (), (kernel,), ("sums",), ())


def joined() -> Program:
    """A cat of two matrices along their columns: two kernels that store into one buffer."""
    a, b = matrix("a"), matrix("b")
    rows, width = a.shape
    whole = Buffer("whole", F32, (rows, width + b.shape[1]))
    return Program(
        name="joined",
        inputs=(a, b),
        sizes=(),
        steps=(
            Kernel("whole_0", (whole,), over(rows, width), (), (Store("whole", (I0, I1), Load("a", (I0, I1), F32)),)),
            Kernel(
                "whole_1",
                (),
                over(rows, b.shape[1]),
                (),
                (Store("whole", (I0, I1 + width), Load("b", (I0, I1), F32)),),
            ),
        ),
        outputs=("whole",),
        guards=(Condition("==", b.shape[0], rows),),
    )


def with_case() -> Program:
    """The sum of each row, and for rows of three the third element instead."""
    third = Store("sums", (I0,), Load("x", (I0, integer(2)), F32))
    sums = Buffer("sums", F32, (symbol("x_size_0"),))
    steps = (Kernel("sums", (sums,), over(symbol("x_size_0")), (), (third,)),)
    return replace(summed(), cases=(Case((("x_size_1", 3),), steps),))
