"""Reduce along memory where rows lie across it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from opwright.ir.contents import loads, locals_in, needed
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Load, Local, cast
from opwright.ir.expressions.integer import symbol, symbols_of
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Axis, Buffer, Gather, Kernel, Let, Program, Reduce, Step, Store, buffers_of
from opwright.ir.rows import indexed_by, outer_axes, row_axes

_SUMMED = (DType.FLOAT32, DType.FLOAT64)


def columns_first(program: Program) -> Program:
    """Sum the columns of what lies across memory, and then the few values that are left of each row.

    Before: kernel m over i0, i1, rows of i2, i3:  reduce s = sum of x[i0, i3, i1*g + i2];  m[i0, i1] = s / n
    After:  kernel m_columns over i0, i3, i1, i2:  s_of_columns[i0, i1, i2] = sum of x[i0, i3, i1*g + i2]
            kernel m over i0, i1, rows of i2:      reduce s = sum of s_of_columns[i0, i1, i2];  m[i0, i1] = s / n

    So it is for group and instance norm with channels last. What is summed twice is kept in double precision between.
    """
    names = {step.name for step in program.steps if isinstance(step, Kernel)} | set(buffers_of(program))
    steps: list[Step] = []
    for step in program.steps:
        order = _order_in_memory(step) if isinstance(step, Kernel) else None
        steps += _split(step, order, names) if isinstance(step, Kernel) and order else [step]
    return replace(program, steps=tuple(steps))


def _split(kernel: Kernel, order: Sequence[Axis], names: set[str]) -> list[Kernel]:
    left = [axis for axis in row_axes(kernel) if axis in _last_of(kernel)]
    kept = (*outer_axes(kernel), *left)
    at, shape = tuple(symbol(axis.name) for axis in kept), tuple(axis.extent for axis in kept)
    targets: list[Buffer] = []
    stores, lets = list[Store](), list[Let | Reduce]()
    taken = {let.name for let in kernel.lets}
    for let in kernel.lets:
        if isinstance(let, Let):
            lets.append(let)
        elif isinstance(let, Reduce):
            dtype = let.value.dtype
            wide = DType.FLOAT64 if left else dtype
            columns = Buffer(fresh(f"{let.name}_of_columns", names, taken), wide, shape)
            names.add(columns.name)
            targets.append(columns)
            stores.append(Store(columns.name, at, cast(let.value, wide), let.function))
            if not left:
                lets.append(Let(let.name, Load(columns.name, at, wide), let.spoken))
                continue
            each, whole = (fresh(f"{let.name}_{part}", names, taken) for part in ("column", "whole"))
            taken |= {each, whole}
            lets.append(Let(each, Load(columns.name, at, wide)))
            lets.append(Reduce(whole, let.function, Local(each, wide)))
            lets.append(Let(let.name, cast(Local(whole, wide), dtype), let.spoken))
    name = fresh(f"{kernel.name}_columns", names)
    names.add(name)
    before = needed(kernel.lets, [store.value for store in stores])
    after = needed(lets, [store.value for store in kernel.stores])
    return [
        Kernel(name, tuple(targets), tuple(order), tuple(before), tuple(stores)),
        replace(kernel, axes=kept, lets=tuple(after), row_axes=len(left)),
    ]


def _order_in_memory(kernel: Kernel) -> tuple[Axis, ...] | None:
    """The axes of a kernel as memory has them, outermost first, if its rows lie across and only sums are asked for."""
    rows, reductions = row_axes(kernel), [let for let in kernel.lets if isinstance(let, Reduce)]
    along, found = {axis.name for axis in rows}, {let.name for let in reductions}
    if not reductions or any(isinstance(let, Gather) for let in kernel.lets):
        return None
    if any(let.function != "sum" or let.value.dtype not in _SUMMED for let in reductions):
        return None
    if any(store.reduction or indexed_by(store.indices, along) for store in kernel.stores):
        return None
    summed = needed(kernel.lets, [let.value for let in reductions])
    if any(local.name in found for each in (*reductions, *summed) for local in locals_in(each.value)):
        return None  # what is summed depends on another sum
    orders = {_order(load, kernel) for load in _wide(kernel)}
    (order,) = orders if len(orders) == 1 else (None,)
    return order if order and len(order) == len(kernel.axes) and order[-1] != kernel.axes[-1] else None


def _wide(kernel: Kernel) -> Iterator[Load]:
    """The loads that differ from point to point along the last axis."""
    return (load for load, _ in loads(kernel) if indexed_by(load.indices, {kernel.axes[-1].name}))


def _order(load: Load, kernel: Kernel) -> tuple[Axis, ...]:
    """The axes in its indices, from the outermost dimension; those within one dimension as the kernel has them."""
    return tuple(axis for index in load.indices for axis in kernel.axes if axis.name in symbols_of(index))


def _last_of(kernel: Kernel) -> list[Axis]:
    """The axes of the innermost dimension in memory."""
    load = next(_wide(kernel))
    return [axis for axis in kernel.axes if axis.name in symbols_of(load.indices[-1])]
