"""Return a view of what a library operation made, where a kernel would only copy it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opwright.ir.call_traits import RETURNS_NEW
from opwright.ir.contents import count_reads
from opwright.ir.expressions.expression import Load
from opwright.ir.expressions.integer import ONE, ZERO, Integer, product, substitute, symbol, symbols_of
from opwright.ir.program import Call, Kernel, Program, Step, TensorOperand, View, buffers_of, view_axes
from opwright.passes.buffers.memory import flat, is_plain, through, views_of


def return_views(program: Program) -> Program:
    """Return what a library operation made in another shape, instead of a copy of it.

    Before: call y = mm(a, b);  kernel out[i0, i1, i2] = y[i0*s + i1, i2]
    After:  call y = mm(a, b);  view out[d0, d1, d2] = y[d0*s + d1, d2]

    Elements stay in their order, or get that which the output shall have, as they mostly lie so: if not, the launcher
    copies them. The memory of one result becomes that of one output.
    """
    views, buffers, reads = views_of(program), buffers_of(program), count_reads(program)
    makers = _makers(program)
    taken = {makers.get(name) for name in program.outputs}
    steps: list[Step] = []
    for step in program.steps:
        view = copied(step, views) if isinstance(step, Kernel) else None
        if view is not None and view.target.name in program.outputs and reads[view.target.name] == 1:
            maker = makers.get(view.source)
            keeps = keeps_order(view, buffers[view.source].shape) or view.indices in _in_orders(program, view)
            if maker is not None and maker not in taken and keeps:
                taken.add(maker)
                step = view
        steps.append(step)
    return replace(program, steps=tuple(steps))


def _in_orders(program: Program, view: View) -> list[tuple[Integer, ...]]:
    """The indices of a whole buffer, for each order of an output that is this view."""
    named = zip(program.outputs, program.output_orders, strict=False)
    axes = tuple(map(symbol, view_axes(len(view.target.shape))))
    orders = [order for name, order in named if order and name == view.target.name]
    return [tuple(axes[order.index(dimension)] for dimension in range(len(order))) for order in orders]


def _makers(program: Program) -> Mapping[str, str]:
    """For each result of a library operation in memory that it made: the result that the memory was made for."""
    found: dict[str, str] = {}
    for step in program.steps:
        match step:
            case Call(targets, function) if function in RETURNS_NEW:
                found |= {target.name: target.name for target in targets}
            case Call((target,), "aten::reshape", _, (TensorOperand(source), _)) if source in found:
                found[target.name] = found[source]
            case _:
                pass
    return found


def copied(kernel: Kernel, views: Mapping[str, View]) -> View | None:
    """What a kernel copies, as a view of the buffer in memory; None if it does more."""
    load = kernel.stores[0].value
    if kernel.lets or not kernel.targets or not isinstance(load, Load):
        return None
    while load.buffer in views:
        load = through(views[load.buffer], load.indices, load)
    return seen_by(kernel, load)


def seen_by(kernel: Kernel, load: Load) -> View | None:
    """The view whose elements a kernel loads for those it stores; None if it does not store one whole buffer."""
    if not is_plain(replace(kernel, lets=())):
        return None
    (store,), (target,) = kernel.stores, kernel.targets
    axes = view_axes(len(target.shape))
    at = {name: symbol(axis) for axis, index in zip(axes, store.indices, strict=True) for name in symbols_of(index)}
    return View(target, load.buffer, tuple(substitute(index, at) for index in load.indices))


def keeps_order(view: View, shape: Sequence[Integer]) -> bool:
    """Whether a view has all elements of a buffer of this shape, in their order."""
    axes = [
        ZERO if size == ONE else symbol(axis)
        for axis, size in zip(view_axes(len(view.target.shape)), view.target.shape, strict=True)
    ]
    return product(view.target.shape) == product(shape) and flat(view.indices, shape) == flat(axes, view.target.shape)
