"""Add what is summed before it is summed."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.contents import count_reads
from opwright.ir.expressions.expression import Apply, Expression, Load, apply
from opwright.ir.expressions.integer import symbol
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Buffer, Call, Kernel, Program, Reduce, Step, Store, buffers_of
from opwright.passes.buffers.memory import is_plain


def add_before_reducing(program: Program) -> Program:
    """Sum up once what several kernels over the same axes sum up, and another one adds.

    Before:  kernel p over i0, i1:  p[i1] = sum of a[i0, i1];   kernel q over i0, i1:  q[i1] = sum of b[i0, i1]
             kernel r over i0:  r[i0] = p[i0] + q[i0]
    After:   kernel terms over i0, i1:  terms[i0, i1] = a[i0, i1] + b[i0, i1]
             kernel r over i0, i1:  r[i1] = sum of terms[i0, i1]

    This is the gradient of a parameter that each step of a recurrence reads. Sums between which a library operation
    runs stay apart: what is summed would have to be kept.
    """
    reads, names = count_reads(program), set(buffers_of(program))
    steps: list[Step | None] = []
    sums: dict[str, int] = {}  # where they are among the steps
    for step in program.steps:
        pair = _added(step) if isinstance(step, Kernel) else None
        if pair is not None and all(each in sums and reads[each] == 1 for each in pair):
            first, second = (steps[sums[each]] for each in pair)
            assert isinstance(first, Kernel)
            assert isinstance(second, Kernel)
            assert isinstance(step, Kernel)
            if (joined := _joined(first, second, step, names)) is not None:
                for each in pair:
                    steps[sums.pop(each)] = None
                terms, step = joined
                steps.append(terms)
        if isinstance(step, Call):
            sums.clear()
        if isinstance(step, Kernel) and _summed(step) is not None and step.targets[0].name not in program.outputs:
            sums[step.targets[0].name] = len(steps)
        steps.append(step)
    return replace(program, steps=tuple(step for step in steps if step is not None))


def _added(kernel: Kernel) -> tuple[str, str] | None:
    """The two buffers that a kernel adds, element by element."""
    match kernel.stores:
        case (Store(value=Apply("add", (Load() as x, Load() as y))) as store,) if is_plain(kernel) and not kernel.lets:
            same = x.indices == y.indices == store.indices and x.buffer != y.buffer and x.dtype is y.dtype
            return (x.buffer, y.buffer) if same else None
    return None


def _summed(kernel: Kernel) -> Expression | None:
    """The real numbers that a kernel sums, and does nothing else."""
    if len(kernel.targets) != 1:
        return None
    match kernel.lets, kernel.stores:
        case (), (Store(reduction="sum") as store,):
            value = store.value
        case (Reduce(function="sum", value=value),), (Store(reduction=None),):
            pass
        case _:
            return None
    return value if value.dtype.is_floating else None


def _joined(first: Kernel, second: Kernel, added: Kernel, names: set[str]) -> tuple[Kernel, Kernel] | None:
    """The kernel that adds the terms of two sums, and the one that sums them; None if more than terms differ."""
    (target,), one, other = added.targets, _summed(first), _summed(second)
    if one is None or other is None or _shape_of(first) != _shape_of(second) or one.dtype is not target.dtype:
        return None
    name = fresh("terms", names)
    names.add(name)
    at = tuple(symbol(axis.name) for axis in first.axes)
    terms = Buffer(name, target.dtype, tuple(axis.extent for axis in first.axes))
    adding = Kernel(name, (terms,), first.axes, (), (Store(name, at, apply("add", one, other)),))
    load, (store,) = Load(name, at, target.dtype), first.stores
    if first.lets:
        return adding, replace(
            first,
            name=target.name,
            targets=(target,),
            lets=(replace(first.lets[0], value=load),),
            stores=(replace(store, buffer=target.name),),
        )
    summing = replace(store, buffer=target.name, value=load)
    return adding, replace(first, name=target.name, targets=(target,), stores=(summing,))


def _shape_of(kernel: Kernel) -> object:
    (store,), (target,) = kernel.stores, kernel.targets
    return kernel.axes, kernel.row_axes, len(kernel.lets), store.indices, store.reduction, target.shape, target.dtype
