"""Let a Program read its inputs and write its outputs as they lie in memory.

Before: kernel y[i0, i1] = 2 * x[i0, i1]                     (x and y transposed)
After:  kernel y_1[i0, i1] = 2 * x[i0, i1]                   (x of dimensions [1, 0], y_1 of dimensions [1, 0])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opwright.ir.contents import reads_of
from opwright.ir.expressions.expression import Load
from opwright.ir.expressions.integer import Integer, symbol
from opwright.ir.names.fresh import fresh
from opwright.ir.parts import with_parts
from opwright.ir.program import (
    Buffer,
    Call,
    Check,
    Kernel,
    Program,
    Step,
    Store,
    TensorOperand,
    View,
    buffers_of,
    view_axes,
)
from opwright.ir.relations.equal_sizes import EqualSizes
from opwright.lowering.nodes import over
from opwright.tracing.interface.orders import Order


def lay_out(program: Program, input_orders: Sequence[Order], output_orders: Sequence[Order]) -> Program:
    """Permute inputs and outputs.

    Args:
        program: A Program as lowered.
        input_orders: The order of each input's dimensions in memory, outermost first; () as written.
        output_orders: That which each output shall have.
    """
    if not any((*input_orders, *output_orders)):
        return program
    orders = {buffer.name: order for buffer, order in zip(program.inputs, input_orders, strict=True) if order}
    names = set(buffers_of(program))
    steps = list(_as_in_memory(program, orders, names))
    outputs = list(program.outputs)
    for position, order in enumerate(output_orders):
        buffer = buffers_of(program)[outputs[position]]
        if order != orders.get(buffer.name, ()):
            copy = _copied(buffer, order, orders.get(buffer.name, ()), fresh(buffer.name, names))
            outputs[position] = copy.name
            names.add(copy.name)
            steps.append(copy)
    return replace(
        program,
        inputs=tuple(_permuted(buffer, orders.get(buffer.name, ())) for buffer in program.inputs),
        steps=tuple(steps),
        outputs=tuple(outputs),
        input_orders=tuple(input_orders),
        output_orders=tuple(output_orders),
    )


def _permuted(buffer: Buffer, order: Order) -> Buffer:
    return replace(buffer, shape=_in(order, buffer.shape))


def _in(order: Order, members: Sequence[Integer]) -> tuple[Integer, ...]:
    return tuple(members[dimension] for dimension in order or range(len(members)))


def _copied(buffer: Buffer, order: Order, lies: Order, name: str) -> Kernel:
    """A kernel that writes a buffer in an order."""
    copy = replace(_permuted(buffer, order), name=name)
    axes, indices = over(copy.shape)
    as_written = tuple(indices[order.index(d)] for d in range(len(order))) if order else indices
    load = Load(buffer.name, _in(lies, as_written), buffer.dtype)
    return Kernel(name, (copy,), axes, (), (Store(name, indices, load),))


def _as_in_memory(program: Program, orders: Mapping[str, Order], names: set[str]) -> Iterable[Step]:
    """The steps, reading inputs as they lie; a library operation reads a view of one as it is written."""
    buffers, written, equal = buffers_of(program), dict[str, str](), EqualSizes(program.guards)

    def reading(part: Any) -> Any:
        part = with_parts(part, reading)
        match part:
            case Load(buffer) | Check(buffer) if buffer in orders:
                return replace(part, indices=_in(orders[buffer], part.indices))
            case View(_, source) if source in orders:
                return replace(part, indices=_in(orders[source], part.indices))
            case TensorOperand(buffer) if buffer in orders:
                return TensorOperand(written[buffer])
            case _:
                return part

    for step in program.steps:
        for name in sorted({*reads_of(step)} & orders.keys() - written.keys()) if isinstance(step, Call) else ():
            written[name] = fresh(f"{name}_as_written", names)
            names.add(written[name])
            axes = tuple(map(symbol, view_axes(len(orders[name]))))
            shape = tuple(map(equal.spell, buffers[name].shape))
            yield View(replace(buffers[name], name=written[name], shape=shape), name, _in(orders[name], axes))
        yield reading(step)
