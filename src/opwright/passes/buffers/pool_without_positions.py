"""Pool along one dimension without positions, where nobody reads them."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.contents import count_reads
from opwright.ir.expressions.integer import ONE, ZERO, symbol
from opwright.ir.names.fresh import fresh
from opwright.ir.program import (
    Buffer,
    Call,
    ListOperand,
    Operand,
    Program,
    SizeOperand,
    Step,
    TensorOperand,
    View,
    buffers_of,
    view_axes,
)

_WITH_POSITIONS = "aten::max_pool2d_with_indices"


def pool_without_positions(program: Program) -> Program:
    """Call what eager calls without gradients, instead of the two-dimensional pooling that torch traces.

    Before: view u = x[d0, d1, d3];  call y, at = aten::max_pool2d_with_indices(u, [1, 2], …)
    After:  view u = x[d0, d1, d3];  view r = u[d0, d1, 0, d2];  call p = aten::max_pool1d(r, [2], …)
            view y = p[d0, d1, d3]
    """
    buffers, reads = buffers_of(program), count_reads(program)
    steps: list[Step] = []
    for step in program.steps:
        pooled = isinstance(step, Call) and step.function == _WITH_POSITIONS and not reads[step.targets[1].name]
        steps += _along_rows(step, buffers) if isinstance(step, Call) and pooled else [step]
    return replace(program, steps=tuple(steps))


def _along_rows(call: Call, buffers: dict[str, Buffer]) -> list[Step]:
    """The same over rows, if the image is one element high, and the window too."""
    source, kernel, stride, padding, dilation, ceil = call.operands
    target = call.targets[0]
    assert isinstance(source, TensorOperand)
    image = buffers[source.buffer]
    unit = (_first(kernel) == _first(stride) == ONE, _first(padding) == ZERO, _first(dilation) == ONE)
    if image.shape[-2] != ONE or target.shape[-2] != ONE or not all(unit):
        return [call]
    rank = len(image.shape)
    *leading, _, last = map(symbol, view_axes(rank))
    rows, pooled = (
        Buffer(fresh(f"{each.name}_rows", buffers), each.dtype, (*each.shape[:-2], each.shape[-1]))
        for each in (image, target)
    )
    buffers |= {rows.name: rows, pooled.name: pooled}
    operands = (TensorOperand(rows.name), *map(_last, (kernel, stride, padding, dilation)), ceil)
    return [
        View(rows, image.name, (*leading, ZERO, symbol(view_axes(rank - 1)[-1]))),
        Call((pooled,), "aten::max_pool1d", "", operands, call.may_raise),
        View(target, pooled.name, (*leading, last)),
    ]


def _first(operand: Operand) -> object:
    match operand:
        case ListOperand((SizeOperand(value), _)):
            return value
        case _:
            return None


def _last(operand: Operand) -> ListOperand:
    assert isinstance(operand, ListOperand)
    return ListOperand(operand.items[1:])
