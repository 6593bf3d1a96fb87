"""Which innermost axes of a kernel are too short for a loop."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from opwright.ir.expressions.affine import linear_coefficients
from opwright.ir.expressions.integer import ONE, ZERO, Integer, product
from opwright.ir.program import Axis, Buffer, Gather, Kernel, Program, buffers_of
from opwright.passes.buffers.memory import ElementAt, Producers

_MOST_COPIES = 9
_MOST_VALUES = 400  # in all copies: one or two seconds of compile time

Axes = frozenset[Axis]
Steps = Mapping[str, Integer]


def short_axes(program: Program) -> dict[int, Axes]:
    """For each step to unroll, by its position, the axes to write out.

    An axis needs no loop of its own if it and the axis around it are one long axis in memory, for everything that the
    kernel reads and writes. It is unrolled all the same if another kernel over the same axes needs that, so that the
    two can be fused; axes of one element are dropped for the same reason. Large kernels stay as they are, to keep
    compile time short.
    """
    producers, buffers = Producers.of(program), buffers_of(program)
    placed = {
        position: step
        for position, step in enumerate(program.steps)
        if isinstance(step, Kernel) and producers.is_placed(step)
    }
    together: dict[Axes, list[Kernel]] = {}
    for kernel in placed.values():
        if _ends_in_a_short_axis(kernel):
            together.setdefault(_wide(kernel), []).append(kernel)
    short: dict[Axes, Axes] = {}
    for axes, kernels in together.items():
        behind = [producers.behind(kernel) for kernel in kernels]
        loaded = [filter(producers.is_loaded, places) for places in behind]
        written_out = max(map(_to_write_out, kernels, loaded, itertools.repeat(buffers)), key=len)
        copies = product(axis.extent for axis in written_out).constant or 0
        if written_out and copies * sum(map(len, behind)) <= _MOST_VALUES:
            short[axes] = written_out
    left = {axes - some for axes, some in short.items()}
    found = {}
    for position, kernel in placed.items():
        axes = _wide(kernel)
        if axes in short:
            found[position] = short[axes]
        elif axes in left and len(axes) < len(kernel.axes):
            found[position] = Axes()
    return found


def innermost_axis(kernel: Kernel) -> Axis | None:
    """The last axis of more than one element."""
    return next((axis for axis in reversed(kernel.axes) if axis.extent != ONE), None)


def _wide(kernel: Kernel) -> Axes:
    return Axes(axis for axis in kernel.axes if axis.extent != ONE)


def _ends_in_a_short_axis(kernel: Kernel) -> bool:
    innermost = innermost_axis(kernel)
    if any(isinstance(let, Gather) for let in kernel.lets):
        return False
    return innermost is not None and _is_short(innermost)


def _is_short(axis: Axis) -> bool:
    return (extent := axis.extent.constant) is not None and 0 < extent <= _MOST_COPIES


def _to_write_out(kernel: Kernel, loaded: Iterable[ElementAt], buffers: Mapping[str, Buffer]) -> Axes:
    axes = [axis for axis in kernel.axes if axis.extent != ONE]
    places = {(store.buffer, store.indices) for store in kernel.stores} | {*loaded}
    steps = _steps_in_memory(places, [axis.name for axis in kernel.axes], buffers)
    if steps is None:
        return Axes()
    found: list[Axis] = []
    copies = 1
    while True:
        run = _innermost_run(axes, steps)
        length = product(axis.extent for axis in run).constant
        if len(run) == len(axes) or not length or copies * length > _MOST_COPIES:
            break
        found += run
        copies *= length
        del axes[-len(run) :]
    return Axes() if all(map(_is_short, axes)) else Axes(found)


def _innermost_run(axes: Sequence[Axis], steps: Sequence[Steps]) -> Sequence[Axis]:
    """The longest run of last axes that are one axis in memory."""
    begin = len(axes) - 1
    while begin > 0 and _are_one(axes[begin - 1], axes[begin], steps):
        begin -= 1
    return axes[begin:]


def _are_one(outer: Axis, inner: Axis, steps: Sequence[Steps]) -> bool:
    return all(step.get(outer.name, ZERO) == step.get(inner.name, ZERO) * inner.extent for step in steps)


def _steps_in_memory(
    places: Iterable[ElementAt], axes: Sequence[str], buffers: Mapping[str, Buffer]
) -> list[Steps] | None:
    """For each place, how far a step along each axis goes where buffers are row-major; None if it is not affine."""
    found: list[Steps] = []
    for buffer, indices in places:
        shape = buffers[buffer].shape
        offset = sum((index * product(shape[d + 1 :]) for d, index in enumerate(indices)), ZERO)
        split = linear_coefficients(offset, axes)
        if split is None:
            return None
        found.append(split[0])
    return found
