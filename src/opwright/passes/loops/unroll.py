"""Unroll short innermost axes, so that the innermost loop is a long one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce

from opwright.ir.expressions.expression import Expression, Literal, Load, Local, apply, leaves
from opwright.ir.expressions.integer import ONE, ZERO, Integer, integer, symbols_of
from opwright.ir.expressions.reductions import REDUCERS
from opwright.ir.program import Axis, Gather, Kernel, Program, Reduce, Store
from opwright.ir.rows import row_axes
from opwright.ir.symbols import replace_symbols
from opwright.passes.loops.short_axes import short_axes


def unroll(program: Program) -> Program:
    """Write out what an unfused kernel does for each element of its short innermost axes.

    Before:  kernel r over i0, i1, rows of i2 < 3:  reduce f = sum of x[i0, i2] * y[i1, i2];  r[i0, i1] = f
    After:   kernel r over i0, i1:  r[i0, i1] = 0.0 + x[i0, 0] * y[i1, 0] + … + x[i0, 2] * y[i1, 2]

    Before:  kernel z over i0, i1 < 3:  z[i0, i1] = x[i0, i1] * y[i0]
    After:   kernel z over i0:  z[i0, 0] = x[i0, 0] * y[i0];  …;  z[i0, 2] = x[i0, 2] * y[i0]

    A few numbers are summed in their own precision.
    """
    short = short_axes(program)
    steps = list(program.steps)
    for position, axes in short.items():
        kernel = steps[position]
        assert isinstance(kernel, Kernel)
        steps[position] = _unrolled(kernel, axes)
    return replace(program, steps=tuple(steps)) if short else program


@dataclass(frozen=True, slots=True)
class _Element:
    """What an unfused kernel does at a point: store a value, perhaps reduced along some axes."""

    value: Expression
    buffer: str
    indices: tuple[Integer, ...]
    function: str | None
    reduced: frozenset[str]

    @classmethod
    def of(cls, kernel: Kernel) -> _Element:
        (store,) = kernel.stores
        if reductions := [let for let in kernel.lets if isinstance(let, Reduce)]:
            (reduction,) = reductions
            reduced = frozenset(axis.name for axis in row_axes(kernel))
            return cls(reduction.value, store.buffer, store.indices, reduction.function, reduced)
        kept = {name for index in store.indices for name in symbols_of(index)}
        reduced = frozenset(axis.name for axis in kernel.axes if axis.extent != ONE and axis.name not in kept)
        return cls(store.value, store.buffer, store.indices, store.reduction, reduced)

    def at(self, where: Mapping[str, Integer]) -> _Element:
        return replace_symbols(self, where)


def _unrolled(kernel: Kernel, short: Set[Axis]) -> Kernel:
    unit = {axis.name: ZERO for axis in kernel.axes if axis.extent == ONE}
    gathers = [let for let in kernel.lets if isinstance(let, Gather)]
    gathered_along = {name for gather in gathers for index in gather.value.indices for name in symbols_of(index)}
    short = {axis for axis in short if axis.name not in gathered_along}
    element = _Element.of(kernel).at(unit)
    left = tuple(axis for axis in kernel.axes if axis.extent != ONE and axis not in short)
    if element.function:
        left = _in_memory_order(left, element.value)
    elements = [
        _reduced([part.at(inner) for inner in _points(kernel, short, lambda name: name in element.reduced)])
        for outer in _points(kernel, short, lambda name: name not in element.reduced)
        for part in [element.at(outer)]
    ]
    reduced_left = tuple(axis for axis in left if axis.name in element.reduced)
    if not reduced_left or left[-1] not in reduced_left:
        function = element.function if reduced_left else None
        stores = tuple(Store(each.buffer, each.indices, each.value, function) for each in elements)
        return replace(kernel, axes=left, lets=replace_symbols(tuple(gathers), unit), stores=stores, row_axes=0)
    names = [f"{element.buffer}_{element.function}_{number}" for number in range(len(elements))]
    reductions = tuple(Reduce(name, element.function or "", e.value) for name, e in zip(names, elements, strict=True))
    stores = tuple(
        Store(e.buffer, e.indices, Local(name, e.value.dtype)) for name, e in zip(names, elements, strict=True)
    )
    kept_left = tuple(axis for axis in left if axis not in reduced_left)
    return replace(kernel, axes=(*kept_left, *reduced_left), lets=reductions, stores=stores, row_axes=len(reduced_left))


def _points(kernel: Kernel, short: Set[Axis], choose: Callable[[str], bool]) -> Sequence[Mapping[str, Integer]]:
    """All points of the short axes that are chosen."""
    axes = [axis for axis in kernel.axes if axis in short and choose(axis.name)]
    extents = [range(axis.extent.constant or 0) for axis in axes]
    return [
        {axis.name: integer(index) for axis, index in zip(axes, point, strict=True)}
        for point in itertools.product(*extents)
    ]


def _reduced(elements: Sequence[_Element]) -> _Element:
    """The reduction, written out as one element."""
    first, values = elements[0], [element.value for element in elements]
    if first.function == "sum" and len(values) > 1 and first.value.dtype.is_floating:
        values = [Literal(0.0, first.value.dtype), *values]  # a sum of −0 is 0
    if len(values) == 1:
        return first
    combine = REDUCERS[first.function or ""].combine
    return replace(first, value=reduce(lambda left, right: apply(combine, left, right), values))


def _in_memory_order(axes: Sequence[Axis], value: Expression) -> tuple[Axis, ...]:
    """The axes as they lie in the buffer that is reduced, outermost first."""
    (load,) = (leaf for leaf in leaves(value) if isinstance(leaf, Load))
    met = [name for index in load.indices for name in symbols_of(index)]
    return tuple(sorted(axes, key=lambda axis: met.index(axis.name)))
