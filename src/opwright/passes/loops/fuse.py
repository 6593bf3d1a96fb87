"""Fuse element-wise kernels, reductions and the views between them into as few loop nests as the data allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field, replace

from opwright.ir import program as ir
from opwright.ir.contents import locals_in
from opwright.ir.expressions.expression import (
    Cast,
    Expression,
    Literal,
    Load,
    Local,
    children,
    leaves,
    rewrite_children,
)
from opwright.ir.expressions.integer import ONE, ZERO, Integer, substitute, symbol, symbols_of
from opwright.ir.names.fresh import fresh
from opwright.ir.symbols import replace_symbols
from opwright.passes.buffers.memory import Indices, Producers, axis_values, is_whole, through
from opwright.passes.loops.repeated_work import stored_instead, times_between_calls


def fuse(program: ir.Program) -> ir.Program:
    """Compute every value where it is used, and write only what must be in memory.

    Before:  kernel a[i0] = exp(x[i0]);  view b = a[d0 + n];  kernel c[i0] = b[i0] * y[i0]
    After:   kernel c over i0:  let b = exp(x[i0 + n]);  c[i0] = b * y[i0]

    Before:  kernel m over i0, row i1:  reduce f = maximum of x[i0, i1];  m[i0] = f
             kernel y[i0, i1] = x[i0, i1] - m[i0]
    After:   kernel y over i0, row i1:  reduce f = maximum of x[i0, i1];  y[i0, i1] = x[i0, i1] - f

    Outputs, operands of library calls and buffers stored piece by piece stay in memory. Kernels over the same axes
    become one, unless a library call must run between them; checks of argument values run first. Values that are
    uniform over a row join the kernel that reduces the row. If there is only one row, many threads share it, and what
    depends on its reduction is a kernel of its own, which waits for all threads; so is what depends on a reducing
    store. A value that several kernels would compute by much work is stored (repeated_work.py).
    """
    producers = Producers.of(program)
    stored = stored_instead(program, producers, times_between_calls(program, producers))
    fusion = _Fusion(program, stored)
    fused = fusion.run()
    more = stored_instead(program, fusion.producers, fusion.times)
    return _Fusion(program, stored | more).run() if more else fused


@dataclass
class _Group:
    """A fused kernel that is still growing."""

    axes: tuple[ir.Axis, ...]
    row_axes: int = 0
    targets: list[ir.Buffer] = field(default_factory=list)
    lets: list[ir.Binding] = field(default_factory=list)
    stores: list[ir.Store] = field(default_factory=list)
    values: dict[tuple[str, Indices], Expression] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    gathers: dict[tuple[Load, Integer, bool], str] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)  # locals that depend on a reduction

    @property
    def outer(self) -> tuple[ir.Axis, ...]:
        return self.axes[: len(self.axes) - self.row_axes]

    def place(self, buffer: str, indices: Indices) -> tuple[str, Indices]:
        """Where a value is, the same for all ways to write it: along an axis of one element, the index is zero."""
        ones = {axis.name: ZERO for axis in self.axes if axis.extent == ONE}
        return buffer, tuple(substitute(index, ones) for index in indices) if ones else indices

    @property
    def is_one_row(self) -> bool:
        return self.row_axes > 0 and all(axis.extent == ONE for axis in self.outer)

    def kernel(self, name: str) -> ir.Kernel:
        return ir.Kernel(name, tuple(self.targets), self.axes, tuple(self.lets), tuple(self.stores), self.row_axes)


class _Fusion:
    def __init__(self, program: ir.Program, stored: Set[str] = frozenset()) -> None:
        self.program = program
        self.buffers = ir.buffers_of(program)
        self.producers = Producers.of(program)
        self.producers.in_memory.update(stored)
        self.times: Counter[str] = Counter()
        self.views, self.kernels = self.producers.views, self.producers.kernels
        self.in_memory = self.producers.in_memory
        self.position: dict[str, int] = {buffer.name: -1 for buffer in program.inputs}
        numbers = [step for step in program.steps if isinstance(step, ir.Number | ir.Iota)]
        self.position.update((number.target.name, -1) for number in numbers)
        given = {buffer.name for buffer in program.inputs}
        checks = [step for step in program.steps if isinstance(step, ir.Check) and step.buffer in given]
        self.position.update((_passed(check.buffer), -1) for check in checks)
        self.plan: list[_Group | ir.View | ir.Number | ir.Iota | ir.Call | ir.Check] = [*numbers, *checks]

    def run(self) -> ir.Program:
        for step in self.program.steps:
            match step:
                case ir.Kernel() if self.producers.is_placed(step):
                    self._place_kernel(step)
                case ir.View(target=target) if target.name in self.in_memory:
                    self._place(step)
                case ir.Check(buffer) if step not in self.plan:
                    self._place(step)
                    self.position[_passed(buffer)] = len(self.plan) - 1
                case ir.Call():
                    self._place(step)
                case _:
                    pass
        names: set[str] = set()
        steps: list[ir.Step] = []
        for entry in self.plan:
            if isinstance(entry, _Group):
                name = fresh(entry.stores[0].buffer, names)
                names.add(name)
                steps.append(entry.kernel(name))
            else:
                steps.append(entry)
        return replace(self.program, steps=tuple(steps))

    def _place(self, step: ir.View | ir.Call | ir.Check) -> None:
        self.plan.append(step)
        self.position.update((target.name, len(self.plan) - 1) for target in ir.targets_of(step))

    def _place_kernel(self, kernel: ir.Kernel) -> None:
        group = self._group_for(kernel)
        group.row_axes = max(group.row_axes, kernel.row_axes)
        place = self.plan.index(group)
        at = _beside_rows(kernel, group)
        group.targets.extend(kernel.targets)
        locals_: dict[str, Expression] = {}
        for reduction in kernel.lets:
            if isinstance(reduction, ir.Reduce):
                locals_[reduction.name] = self._reduce(reduction, group)
        at |= self._gather(kernel, group, at)
        for store in kernel.stores:
            value = self._build(_named(store.value, locals_), group, at)
            indices = replace_symbols(store.indices, at)
            if store.reduction is None and (kernel.lets or is_whole(kernel) or len(kernel.stores) > 1):
                value = self._bind(store.buffer, value, group)
                group.values[group.place(store.buffer, indices)] = value
            group.stores.append(replace(store, indices=indices, value=value))
            self.position[store.buffer] = max(place, self.position.get(store.buffer, -1))

    def _reduce(self, reduction: ir.Reduce, group: _Group) -> Local:
        value = self._build(reduction.value, group, {})
        name = fresh(reduction.name, group.names)
        group.names.add(name)
        group.late.add(name)
        group.lets.append(replace(reduction, name=name, value=value))
        return Local(name, value.dtype)

    def _gather(self, kernel: ir.Kernel, group: _Group, at: dict[str, Integer]) -> dict[str, Integer]:
        """Add a kernel's gathered indices to `group`; return their names there."""
        called: dict[str, Integer] = {}
        for gather in kernel.lets:
            if isinstance(gather, ir.Gather):
                value = replace_symbols(gather.value, at)
                key = (value, gather.extent, gather.from_end)
                if key not in group.gathers:
                    group.gathers[key] = fresh(gather.name, group.names)
                    group.names.add(group.gathers[key])
                    group.lets.append(replace(gather, name=group.gathers[key], value=value))
                called[gather.name] = symbol(group.gathers[key])
        return called

    def _group_for(self, kernel: ir.Kernel) -> _Group:
        """The latest fused kernel over the same axes that everything needed from memory comes before, or a new one."""
        needed: set[str] = set()
        self._needs_of(kernel, _Group(kernel.axes), {}, needed, set(), set())
        first = max((self.position[name] for name in needed), default=0)  # values of a group need nothing after it
        for place in range(len(self.plan) - 1, max(first, 0) - 1, -1):
            group = self.plan[place]
            if isinstance(group, _Group) and _fits(kernel, group) and self._ready(kernel, group, place):
                return group
        group = _Group(kernel.axes)
        self.plan.append(group)
        return group

    def _ready(self, kernel: ir.Kernel, group: _Group, place: int) -> bool:
        declared = all(self.position.get(store.buffer, -1) <= place for store in kernel.stores)
        needed: set[str] = set()
        found: set[str] = set()
        self._needs_of(kernel, group, _beside_rows(kernel, group), needed, set(), found)
        if not declared or any(self.position[name] >= place for name in needed):
            return False
        waits = bool(found & group.late) and not _once_for_each_row(kernel, group)
        return not (waits and (group.is_one_row or not _in_order(group)))

    def _needs_of(
        self,
        kernel: ir.Kernel,
        group: _Group,
        at: dict[str, Integer],
        needed: set[str],
        seen: set[tuple[str, Indices]],
        found: set[str],
    ) -> None:
        """The same for all values of an unfused kernel; its gathered indices must have been checked."""
        needed.update(_passed(let.value.buffer) for let in kernel.lets if isinstance(let, ir.Gather))
        for statement in (*kernel.lets, *kernel.stores):
            self._needs(statement.value, group, at, needed, seen, found)

    def _needs(
        self,
        value: Expression,
        group: _Group,
        at: dict[str, Integer],
        needed: set[str],
        seen: set[tuple[str, Indices]],
        found: set[str],
    ) -> None:
        """Collect the buffers a value would be loaded from, were it computed in `group`, and the locals it finds."""
        if not isinstance(value, Load):
            for child in children(value):
                self._needs(child, group, at, needed, seen, found)
            return
        indices = tuple(substitute(index, at) for index in value.indices)
        place = group.place(value.buffer, indices)
        known = group.values.get(place)
        if known is not None:
            found.update(local.name for local in locals_in(known))
        if place in seen or known is not None:
            return
        seen.add(place)
        if value.buffer in self.views:
            view = self.views[value.buffer]
            self._needs(through(view, indices, value), group, {}, needed, seen, found)
        elif value.buffer in self.in_memory:
            needed.add(value.buffer)
        else:
            producer = self.kernels[value.buffer]
            self._needs_of(producer, group, axis_values(producer, indices), needed, seen, found)

    def _build(self, value: Expression, group: _Group, at: dict[str, Integer], name: str = "") -> Expression:
        """Write a value into `group`, with everything it depends on; `name` is the view that it is read through."""
        if not isinstance(value, Load):
            return rewrite_children(value, lambda child: self._build(child, group, at))
        name = name or value.buffer
        indices = tuple(substitute(index, at) for index in value.indices)
        key = group.place(value.buffer, indices)
        if key in group.values:
            return group.values[key]
        if value.buffer in self.views:
            built = self._build(through(self.views[value.buffer], indices, value), group, {}, name)
        elif value.buffer in self.in_memory:
            built = replace(value, indices=indices)
        else:
            producer = self.kernels[value.buffer]
            self.times[value.buffer] += 1
            at = axis_values(producer, indices)
            built = self._build(producer.stores[0].value, group, at | self._gather(producer, group, at))
        group.values[key] = self._bind(name, built, group)
        return group.values[key]

    def _bind(self, buffer: str, value: Expression, group: _Group) -> Expression:
        """Bind a value to the name of the buffer it would have filled; a local or a number stays as it is."""
        if isinstance(value, (Local, Literal)) or (isinstance(value, Cast) and isinstance(value.operand, Literal)):
            return value
        name = fresh(buffer, group.names)
        group.names.add(name)
        if any(local.name in group.late for local in locals_in(value)):
            group.late.add(name)
        group.lets.append(ir.Let(name, value, self.buffers[buffer].spoken))
        return Local(name, value.dtype)


def _passed(buffer: str) -> str:
    """The key that stands for the check of a buffer among positions."""
    return f"check of {buffer}"


def _named(value: Expression, locals_: dict[str, Expression]) -> Expression:
    """Replace the locals of an unfused kernel by their new values."""
    if isinstance(value, Local):
        return locals_[value.name]
    return rewrite_children(value, lambda child: _named(child, locals_))


def _fits(kernel: ir.Kernel, group: _Group) -> bool:
    """Whether a kernel has the points of a group, or one point for each of its rows."""
    if kernel.axes != group.axes:
        return _once_for_each_row(kernel, group)
    if kernel.row_axes and group.row_axes not in (0, kernel.row_axes):
        return False
    rows = {axis.name for axis in group.axes[len(group.axes) - max(group.row_axes, kernel.row_axes) :]}
    reducing = [store for store in (*group.stores, *kernel.stores) if store.reduction is not None]
    if not reducing:
        return True
    kept = [_axes_in(store.indices) & {axis.name for axis in group.axes} for store in reducing]
    has_rows = max(group.row_axes, kernel.row_axes) > 0
    return all(some == kept[0] for some in kept) and (not has_rows or rows <= kept[0])


def _once_for_each_row(kernel: ir.Kernel, group: _Group) -> bool:
    wide = tuple(axis for axis in kernel.axes if axis.extent != ONE)
    outer = tuple(axis for axis in group.outer if axis.extent != ONE)
    return group.row_axes > 0 and wide == outer and is_whole(kernel) and kernel.axes != group.axes


def _beside_rows(kernel: ir.Kernel, group: _Group) -> dict[str, Integer]:
    """Where the axes of a kernel are that runs once for each row: those of one element are not the group's."""
    if kernel.axes == group.axes:
        return {}
    return {axis.name: ZERO for axis in kernel.axes if axis.extent == ONE}


def _in_order(group: _Group) -> bool:
    """Whether rows are read contiguously: rows across the outer axes are reduced once and do not stay in cache."""
    position = {axis.name: number for number, axis in enumerate(group.axes)}
    for let in group.lets:
        for leaf in leaves(let.value):
            if isinstance(leaf, Load):
                met = [position[name] for index in leaf.indices for name in sorted(symbols_of(index) & set(position))]
                if met != sorted(met):
                    return False
    return True


def _axes_in(indices: Indices) -> set[str]:
    return {name for index in indices for name in symbols_of(index)}
