"""Compute once what a loop over memory would compute again for every outer index."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from opwright.ir.contents import needed
from opwright.ir.expressions.expression import Apply, Expression, Load, Local, nodes, rewrite_children
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import symbol, symbols_of
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Axis, Buffer, Kernel, Let, Program, Step, Store, buffers_of

_LONG = ("divide", "reciprocal")  # that take a processor as long as many sums; so do all functions without a template


def uniform_first(program: Program) -> Program:
    """Store what depends on few of the axes of a kernel, so that its loop over memory is long, and does little.

    Before: kernel y over i0, i1, i2, i3:  y[i0, i1, i2*g + i3] = (x[i0, i1, i2*g + i3] - m[i0, i2]/n) * rsqrt(v[i3])
    After:  kernel y_each over i0, i2, i3:  y_each[i0, i2, i3] = m[i0, i2]/n
            kernel y_each_1 over i3:        y_each_1[i3] = rsqrt(v[i3])
            kernel y over i0, i1, i2, i3:   y[…] = (x[…] - y_each[i0, i2, i3]) * y_each_1[i3]

    The axes of the last dimension in memory are one loop only if every load has all of them or none. Values are
    stored as they are, so nothing is rounded otherwise. What is the same for all of the last axis stays, as it is
    computed once for each loop over it.
    """
    names = {step.name for step in program.steps if isinstance(step, Kernel)} | set(buffers_of(program))
    steps: list[Step] = []
    for step in program.steps:
        steps += _Hoisting(step, names).kernels() if isinstance(step, Kernel) and _is_plain(step) else [step]
    return replace(program, steps=tuple(steps))


def _is_plain(kernel: Kernel) -> bool:
    return (
        kernel.row_axes == 0
        and len(kernel.axes) > 1
        and not any(store.reduction for store in kernel.stores)
        and all(isinstance(let, Let) for let in kernel.lets)
        and any(kernel.axes[-1].name in symbols_of(store.indices[-1]) for store in kernel.stores if store.indices)
    )


@dataclass
class _Hoisting:
    """One kernel; `names` are in use in the Program."""

    kernel: Kernel
    names: set[str]
    made: dict[Expression, Local] = field(default_factory=dict)
    loaded: list[tuple[Local, Load]] = field(default_factory=list)
    buffers: list[tuple[Buffer, Expression, tuple[Axis, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.axes = {axis.name for axis in self.kernel.axes}
        self.innermost = self.kernel.axes[-1].name
        last = next(s.indices[-1] for s in self.kernel.stores if self.innermost in symbols_of(s.indices[-1]))
        self.tail = symbols_of(last) & self.axes
        self.seen_by: dict[str, frozenset[str]] = {}
        self.is_long: dict[str, bool] = {}
        for let in self.kernel.lets:
            self.seen_by[let.name] = self._axes_of(let.value)
            self.is_long[let.name] = self._takes_long(let.value)

    def kernels(self) -> list[Kernel]:
        stores = tuple(replace(store, value=self._moved(store.value)) for store in self.kernel.stores)
        lets: list[Let] = []
        for let in reversed(self.kernel.lets):
            values = [*(store.value for store in stores), *(other.value for other in lets)]
            if isinstance(let, Let) and needed([let], values):
                lets.insert(0, replace(let, value=self._moved(let.value, let)))
        if not self.buffers:
            return [self.kernel]
        loaded = [Let(local.name, load) for local, load in self.loaded]
        by_axes: dict[tuple[Axis, ...], list[tuple[Buffer, Expression]]] = {}
        for buffer, value, axes in self.buffers:
            by_axes.setdefault(axes, []).append((buffer, value))
        before = [self._each(axes, some) for axes, some in by_axes.items()]
        return [*before, replace(self.kernel, lets=(*loaded, *lets), stores=stores)]

    def _each(self, axes: tuple[Axis, ...], values: list[tuple[Buffer, Expression]]) -> Kernel:
        at = tuple(symbol(axis.name) for axis in axes)
        stores = tuple(Store(buffer.name, at, value) for buffer, value in values)
        lets = tuple(needed(self.kernel.lets, [value for _, value in values]))
        return Kernel(values[0][0].name, tuple(buffer for buffer, _ in values), axes, lets, stores)

    def _moved(self, value: Expression, bound: Let | None = None) -> Expression:
        """A value with loads of what is stored in the place of what is worth it; `bound` has the value's own name."""
        axes = self._worth_storing(value)
        if axes is None:
            return rewrite_children(value, self._moved)
        value = Local(bound.name, value.dtype) if bound else value
        if value not in self.made:
            name = self._fresh(f"{self.kernel.name}_each")
            at = tuple(symbol(axis.name) for axis in axes)
            self.buffers.append((Buffer(name, value.dtype, tuple(axis.extent for axis in axes)), value, axes))
            load, local = Load(name, at, value.dtype), Local(self._fresh(f"{name}_of_point"), value.dtype)
            self.loaded.append((local, load))
            self.made[value] = local
        return self.made[value]

    def _fresh(self, name: str) -> str:
        name = fresh(name, self.names, self.seen_by)
        self.names.add(name)
        return name

    def _worth_storing(self, value: Expression) -> tuple[Axis, ...] | None:
        """Over which axes to store a value; None if it is rather computed in place."""
        own = self._axes_of(value)
        stored = own | self.tail
        cuts_rows = bool(own & self.tail) and self.innermost not in own
        is_long = self.innermost in own and self._takes_long(value)
        if stored == self.axes or not (cuts_rows or is_long):
            return None
        return tuple(axis for axis in self.kernel.axes if axis.name in stored)

    def _axes_of(self, value: Expression) -> frozenset[str]:
        found: set[str] = set()
        for node in nodes(value):
            if isinstance(node, Load):
                found.update(*(symbols_of(index) for index in node.indices))
            elif isinstance(node, Local):
                found |= self.seen_by[node.name]
        return frozenset(found & self.axes)

    def _takes_long(self, value: Expression) -> bool:
        return any(
            (isinstance(node, Apply) and (node.function in _LONG or FUNCTIONS[node.function].template is None))
            or (isinstance(node, Local) and self.is_long[node.name])
            for node in nodes(value)
        )
