"""Which buffers of an unfused Program must be in memory, and what the others are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opwright.ir import program as ir
from opwright.ir.expressions.expression import Expression, Load, children
from opwright.ir.expressions.integer import ONE, ZERO, Integer, substitute, symbol, symbols_of
from opwright.ir.parts import parts_of

Indices = tuple[Integer, ...]
ElementAt = tuple[str, Indices]


def is_plain(step: ir.Step) -> bool:
    """Whether a kernel computes one whole buffer, element by element; it may gather indices for that."""
    if not isinstance(step, ir.Kernel) or len(step.stores) != 1 or len(step.targets) != 1:
        return False
    if not all(isinstance(let, ir.Gather) for let in step.lets):
        return False
    (store,), (target,) = step.stores, step.targets
    if store.reduction is not None:
        return False
    moving = [index for index, size in zip(store.indices, target.shape, strict=True) if index != ZERO or size != ONE]
    return moving == [symbol(axis.name) for axis in step.axes]


def is_whole(step: ir.Step) -> bool:
    """Whether a kernel computes one whole buffer; several of its axes may be one dimension."""
    if is_plain(step):
        return True
    if not isinstance(step, ir.Kernel) or len(step.stores) != 1 or len(step.targets) != 1 or step.row_axes:
        return False
    (store,), (target,), axes = step.stores, step.targets, list(step.axes)
    for index, size in zip(store.indices, target.shape, strict=True):
        if (index, size) != (ZERO, ONE):
            along = [axes.pop(0) for _ in symbols_of(index) & {axis.name for axis in step.axes} if axes]
            if index != flat([symbol(axis.name) for axis in along], [axis.extent for axis in along]):
                return False
    return store.reduction is None and not axes


def axis_values(kernel: ir.Kernel, indices: Indices) -> dict[str, Integer]:
    """Where the axes of a plain kernel are for one element of its buffer."""
    (store,) = kernel.stores
    return {name: index for own, index in zip(store.indices, indices, strict=True) for name in symbols_of(own)}


def flat(digits: Sequence[Integer], sizes: Sequence[Integer]) -> Integer:
    """The index along a dimension that others, of these sizes, are merged into."""
    index = ZERO
    for digit, size in zip(digits, sizes, strict=True):
        index = index * size + digit
    return index


def plain_kernels(program: ir.Program) -> dict[str, ir.Kernel]:
    """The plain kernels of a Program, by the name of their buffer."""
    return {s.targets[0].name: s for s in program.steps if isinstance(s, ir.Kernel) and is_plain(s)}


def views_of(program: ir.Program) -> dict[str, ir.View]:
    """The views of a Program, by the name of their target."""
    return {step.target.name: step for step in program.steps if isinstance(step, ir.View)}


def find_in_memory(program: ir.Program, plain: Mapping[str, ir.Kernel]) -> set[str]:
    """Buffers that must be in memory: outputs, operands of calls and checks, and those that several kernels store.

    Args:
        program: The Program.
        plain: Its plain kernels, by the name of their buffer.
    """
    found = {buffer.name for buffer in program.inputs} | set(program.outputs)
    for step in program.steps:
        match step:
            case ir.Call(targets=targets, operands=operands):
                found.update(target.name for target in targets)
                found.update(operand.buffer for operand in parts_of(operands, ir.TensorOperand))
            case ir.Number(target=target) | ir.Iota(target=target):
                found.add(target.name)
            case ir.Check(buffer):
                found.add(buffer)
            case ir.Kernel(stores=stores) if not _is_among(step, plain):
                found.update(store.buffer for store in stores)
            case _:
                pass
    for step in reversed(program.steps):
        if isinstance(step, ir.View) and step.target.name in found:
            found.add(step.source)
    return found


def _is_among(kernel: ir.Kernel, plain: Mapping[str, ir.Kernel]) -> bool:
    return any(plain.get(target.name) is kernel for target in kernel.targets)


def through(view: ir.View, indices: Indices, load: Load) -> Load:
    """The load of its source that a load of a view stands for."""
    at = dict(zip(ir.view_axes(len(indices)), indices, strict=True))
    return Load(view.source, tuple(substitute(index, at) for index in view.indices), load.dtype)


@dataclass(frozen=True, slots=True)
class Producers:
    """Where the values of an unfused Program come from.

    Attributes:
        views: By the name of their target.
        kernels: The plain ones, by the name of their buffer.
        in_memory: Buffers that must be in memory.
    """

    views: Mapping[str, ir.View]
    kernels: Mapping[str, ir.Kernel]
    in_memory: set[str]

    @classmethod
    def of(cls, program: ir.Program) -> Producers:
        """Collect them."""
        plain = plain_kernels(program)
        return cls(views_of(program), plain, find_in_memory(program, plain))

    def is_placed(self, kernel: ir.Kernel) -> bool:
        """Whether a kernel of the Program stays separate, instead of being inlined in those that read its buffer."""
        return not _is_among(kernel, self.kernels) or kernel.targets[0].name in self.in_memory

    def behind(self, kernel: ir.Kernel) -> set[ElementAt]:
        """Everything that a kernel's values depend on: its loads, and what those are computed from."""
        found: set[ElementAt] = set()
        for statement in (*kernel.lets, *kernel.stores):
            self._collect(statement.value, {}, found)
        return found

    def is_loaded(self, place: ElementAt) -> bool:
        """Whether it is read from memory, neither through a view nor computed."""
        return place[0] in self.in_memory and place[0] not in self.views

    def _collect(self, value: Expression, at: dict[str, Integer], found: set[ElementAt]) -> None:
        if not isinstance(value, Load):
            for child in children(value):
                self._collect(child, at, found)
            return
        indices = tuple(substitute(index, at) for index in value.indices)
        if (value.buffer, indices) in found:
            return
        found.add((value.buffer, indices))
        if value.buffer in self.views:
            self._collect(through(self.views[value.buffer], indices, value), {}, found)
        elif value.buffer not in self.in_memory:
            producer = self.kernels[value.buffer]
            for statement in (*producer.lets, *producer.stores):
                self._collect(statement.value, axis_values(producer, indices), found)
