"""Compute only the slice of a matrix product that is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opwright.ir.contents import count_reads
from opwright.ir.expressions.integer import Integer, symbol, symbols_of
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Buffer, Call, Program, Step, TensorOperand, View, buffers_of, view_axes

_PRODUCT = "aten::mm"


def narrow_products(program: Program) -> Program:
    """Slice the operand instead of the product, if the product is used through one slice only.

    Before: call y = mm(a, b);  view part = y[d0, d1 + n]
    After:  view columns = b[d0, d1 + n];  call part = mm(a, columns)

    This is the gradient of one of several tensors that `cat` joined before a matrix product.
    """
    reads = count_reads(program)
    slices = {step.source: step for step in program.steps if isinstance(step, View) and reads[step.source] == 1}
    buffers = buffers_of(program)
    steps: list[Step] = []
    narrowed: set[str] = set()
    for step in program.steps:
        part = slices.get(step.targets[0].name) if isinstance(step, Call) and step.function == _PRODUCT else None
        offsets = _offsets(part) if part else None
        if isinstance(step, Call) and part and offsets:
            steps += _narrow(step, part, offsets, buffers)
            narrowed.add(part.target.name)
        elif not (isinstance(step, View) and step.target.name in narrowed):
            steps.append(step)
    return replace(program, steps=tuple(steps))


def _offsets(part: View) -> tuple[Integer, Integer] | None:
    """Where a slice of a matrix begins; None if it is not a slice with steps of one."""
    axes = view_axes(2)
    if len(part.indices) != 2 or len(part.target.shape) != 2:
        return None
    row, column = (index - symbol(axis) for index, axis in zip(part.indices, axes, strict=True))
    return None if (symbols_of(row) | symbols_of(column)) & set(axes) else (row, column)


def _narrow(product: Call, part: View, offsets: tuple[Integer, Integer], buffers: dict[str, Buffer]) -> Sequence[Step]:
    whole, operands = product.targets[0], list(product.operands)
    steps: list[Step] = []
    for dimension, side in enumerate(("rows", "columns")):
        operand = operands[dimension]
        if part.target.shape[dimension] == whole.shape[dimension] or not isinstance(operand, TensorOperand):
            continue
        source = buffers[operand.buffer]
        shape, indices = list(source.shape), [symbol(axis) for axis in view_axes(2)]
        shape[dimension] = part.target.shape[dimension]
        indices[dimension] = indices[dimension] + offsets[dimension]
        target = Buffer(fresh(f"{part.target.name}_{side}", buffers), source.dtype, tuple(shape))
        buffers[target.name] = target
        steps.append(View(target, source.name, tuple(indices)))
        operands[dimension] = TensorOperand(target.name)
    return [*steps, replace(product, targets=(part.target,), operands=tuple(operands))]
