"""Fuse element-wise kernels and the views between them into as few loop nests as the data allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from opwright.ir.expression import Cast, Expression, Literal, Load, Local, children, rewrite_children
from opwright.ir.integer import Integer, substitute, symbol
from opwright.ir.program import (
    Axis,
    Buffer,
    Call,
    Kernel,
    Let,
    Number,
    Program,
    Step,
    Store,
    View,
    buffers_of,
    operand_buffers,
    view_axes,
)

Indices = tuple[Integer, ...]


def fuse(program: Program) -> Program:
    """Compute every value where it is used, and write only what must be in memory.

    Before:  kernel a[i0] = exp(x[i0]);  view b = a[d0 + n];  kernel c[i0] = b[i0] * y[i0]
    After:   kernel c over i0:  let b = exp(x[i0 + n]);  c[i0] = b * y[i0]

    Outputs, operands of library calls and buffers stored piece by piece stay in memory. Kernels over the same axes
    become one, unless a library call lies between what one needs and the other gives.
    """
    return _Fusion(program).run()


@dataclass
class _Group:
    """A fused kernel that is still growing."""

    axes: tuple[Axis, ...]
    targets: list[Buffer] = field(default_factory=list)
    lets: list[Let] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    values: dict[tuple[str, Indices], Expression] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def kernel(self, name: str) -> Kernel:
        return Kernel(name, tuple(self.targets), self.axes, tuple(self.lets), tuple(self.stores))


class _Fusion:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.buffers = buffers_of(program)
        self.views = {step.target.name: step for step in program.steps if isinstance(step, View)}
        self.kernels = {
            step.targets[0].name: step for step in program.steps if isinstance(step, Kernel) and _is_plain(step)
        }
        self.in_memory = self._find_in_memory()
        self.position: dict[str, int] = {buffer.name: -1 for buffer in program.inputs}
        numbers = [step for step in program.steps if isinstance(step, Number)]
        self.position.update((number.target.name, -1) for number in numbers)
        self.plan: list[_Group | View | Number | Call] = [*numbers]

    def run(self) -> Program:
        for step in self.program.steps:
            match step:
                case Kernel() if not _is_plain(step) or step.targets[0].name in self.in_memory:
                    self._place_kernel(step)
                case View(target=target) if target.name in self.in_memory:
                    self._place(step, [step.source], (target,))
                case Call(targets=targets, operands=operands):
                    self._place(step, [name for operand in operands for name in operand_buffers(operand)], targets)
                case _:
                    pass
        names: set[str] = set()
        steps: list[Step] = []
        for entry in self.plan:
            if isinstance(entry, _Group):
                name = _fresh(entry.stores[0].buffer, names)
                names.add(name)
                steps.append(entry.kernel(name))
            else:
                steps.append(entry)
        return replace(self.program, steps=tuple(steps))

    def _find_in_memory(self) -> set[str]:
        """Buffers that must exist: seen from outside, or by a library call, or stored by several kernels."""
        found = {buffer.name for buffer in self.program.inputs} | set(self.program.outputs)
        for step in self.program.steps:
            match step:
                case Call(targets=targets, operands=operands):
                    found.update(target.name for target in targets)
                    found.update(name for operand in operands for name in operand_buffers(operand))
                case Number(target=target):
                    found.add(target.name)
                case Kernel(stores=stores) if not _is_plain(step):
                    found.update(store.buffer for store in stores)
                case _:
                    pass
        for step in reversed(self.program.steps):
            if isinstance(step, View) and step.target.name in found:
                found.add(step.source)
        return found

    def _place(self, step: View | Call, sources: Sequence[str], targets: Sequence[Buffer]) -> None:
        self.plan.append(step)
        self.position.update((target.name, len(self.plan) - 1) for target in targets)

    def _place_kernel(self, kernel: Kernel) -> None:
        group = self._group_for(kernel)
        place = self.plan.index(group)
        group.targets.extend(kernel.targets)
        for store in kernel.stores:
            value = self._build(store.value, group, {})
            group.stores.append(replace(store, value=value))
            whole = tuple(symbol(axis.name) for axis in kernel.axes)
            if store.indices == whole and _is_plain(kernel):
                group.values[(store.buffer, whole)] = self._bind(store.buffer, value, group)
                group.stores[-1] = replace(store, value=group.values[(store.buffer, whole)])
            self.position[store.buffer] = max(place, self.position.get(store.buffer, -1))

    def _group_for(self, kernel: Kernel) -> _Group:
        """The latest fused kernel over the same axes that everything needed from memory comes before, or a new one."""
        for place in range(len(self.plan) - 1, -1, -1):
            group = self.plan[place]
            if isinstance(group, _Group) and group.axes == kernel.axes and self._ready(kernel, group, place):
                return group
        group = _Group(kernel.axes)
        self.plan.append(group)
        return group

    def _ready(self, kernel: Kernel, group: _Group, place: int) -> bool:
        declared = all(self.position.get(store.buffer, -1) <= place for store in kernel.stores)
        needed: set[str] = set()
        for store in kernel.stores:
            self._needs(store.value, group, {}, needed, set())
        return declared and all(self.position[name] < place for name in needed)

    def _needs(
        self, value: Expression, group: _Group, at: dict[str, Integer], needed: set[str], seen: set[tuple[str, Indices]]
    ) -> None:
        """Collect the buffers a value would be loaded from, were it computed in `group`."""
        if not isinstance(value, Load):
            for child in children(value):
                self._needs(child, group, at, needed, seen)
            return
        indices = tuple(substitute(index, at) for index in value.indices)
        if (value.buffer, indices) in seen or (value.buffer, indices) in group.values:
            return
        seen.add((value.buffer, indices))
        if value.buffer in self.views:
            view = self.views[value.buffer]
            self._needs(_through(view, indices, value), group, {}, needed, seen)
        elif value.buffer in self.in_memory:
            needed.add(value.buffer)
        else:
            producer = self.kernels[value.buffer]
            self._needs(producer.stores[0].value, group, _axis_values(producer, indices), needed, seen)

    def _build(self, value: Expression, group: _Group, at: dict[str, Integer], name: str = "") -> Expression:
        """Write a value into `group`, with everything it is computed from; `name` is the view it is seen through."""
        if not isinstance(value, Load):
            return rewrite_children(value, lambda child: self._build(child, group, at))
        name = name or value.buffer
        indices = tuple(substitute(index, at) for index in value.indices)
        key = (value.buffer, indices)
        if key in group.values:
            return group.values[key]
        if value.buffer in self.views:
            built = self._build(_through(self.views[value.buffer], indices, value), group, {}, name)
        elif value.buffer in self.in_memory:
            built = replace(value, indices=indices)
        else:
            producer = self.kernels[value.buffer]
            built = self._build(producer.stores[0].value, group, _axis_values(producer, indices))
        group.values[key] = self._bind(name, built, group)
        return group.values[key]

    def _bind(self, buffer: str, value: Expression, group: _Group) -> Expression:
        """Name a value after the buffer it would have filled; a plain name or number needs none."""
        if isinstance(value, (Local, Literal)) or (isinstance(value, Cast) and isinstance(value.operand, Literal)):
            return value
        name = _fresh(buffer, group.names)
        group.names.add(name)
        group.lets.append(Let(name, value, self.buffers[buffer].spoken))
        return Local(name, value.dtype)


def _is_plain(step: Step) -> bool:
    """Whether a kernel computes one whole buffer, element by element."""
    if not isinstance(step, Kernel) or step.lets or len(step.stores) != 1 or len(step.targets) != 1:
        return False
    return step.stores[0].indices == tuple(symbol(axis.name) for axis in step.axes) and len(step.axes) == len(
        step.targets[0].shape
    )


def _through(view: View, indices: Indices, load: Load) -> Load:
    at = dict(zip(view_axes(len(indices)), indices, strict=True))
    return Load(view.source, tuple(substitute(index, at) for index in view.indices), load.dtype)


def _axis_values(kernel: Kernel, indices: Indices) -> dict[str, Integer]:
    return {axis.name: index for axis, index in zip(kernel.axes, indices, strict=True)}


def _fresh(name: str, taken: set[str]) -> str:
    candidate, number = name, 1
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
