"""How the results of kernels and views lie, given how their sources do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from opwright.ir import program as ir
from opwright.ir.contents import loads, statements
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, Local
from opwright.ir.expressions.integer import ONE, Integer, symbol, symbols_of
from opwright.ir.rows import row_axes
from opwright.sharding.rules.axes import Along, Nest, NotAlong
from opwright.sharding.rules.lies import At, Lies, unknown
from opwright.sharding.rules.sizes import Sizes, mentions
from opwright.sharding.rules.values import Value, combined, converted, reduced

Buffers = Mapping[str, ir.Buffer]


def follow_kernel(
    kernel: ir.Kernel, buffers: Buffers, lies: Mapping[str, Lies], axis: str | None, sizes: Sizes
) -> dict[str, Lies]:
    """How what a kernel writes lies."""
    targets = {store.buffer for store in kernel.stores}
    for load, _ in loads(kernel):
        if load.buffer not in targets and (given := lies[load.buffer]).kind == "unknown":
            return dict.fromkeys(targets, given)
    nest = Nest.over({one.name: one.extent for one in kernel.axes}, axis, sizes)
    try:
        if any(isinstance(let, ir.Gather) and mentions(sizes.spell(let.extent), axis) for let in kernel.lets):
            raise NotAlong("it gathers along the axis")
        read = [(load, lies[load.buffer].at) for load, _ in loads(kernel) if load.buffer not in targets]
        along = nest.along((load.indices, at, _size(buffers[load.buffer], at, sizes)) for load, at in read)
        for load, at in read:
            nest.check(load.indices, at, along, load.buffer)
        scope = _Scope(kernel, lies, along)
        made: dict[str, Lies] = {}
        for store in _in_order(kernel, scope):
            stored = scope.stored(store, nest)
            made[store.buffer] = made[store.buffer].joined(stored) if store.buffer in made else stored
        return made
    except NotAlong as refusal:
        return dict.fromkeys(targets, unknown(f"{kernel.name}: {refusal}"))


def follow_view(view: ir.View, source: ir.Buffer, given: Lies, axis: str | None, sizes: Sizes) -> Lies:
    """How a view lies."""
    if given.kind == "unknown":
        return given
    names = ir.view_axes(len(view.target.shape))
    nest = Nest.over(dict(zip(names, view.target.shape, strict=True)), axis, sizes)
    try:
        along = nest.along([(view.indices, given.at, _size(source, given.at, sizes))])
        if along is not None and given.at is None:
            raise NotAlong("it repeats the same elements along the axis")
        nest.check(view.indices, given.at, along, view.source)
    except NotAlong as refusal:
        if _repeats(nest, view, given):
            return given.moved(At(_spread(nest)))
        return unknown(f"{view.target.name}: {refusal}")
    return given.moved(None if along is None else At(names.index(along.name), along.inner, along.outer))


def _repeats(nest: Nest, view: ir.View, given: Lies) -> bool:
    """Whether a view repeats what does not depend on the axis along it, as `expand` does."""
    spread = [name for name, extent in nest.extents.items() if mentions(extent, nest.axis)]
    if len(spread) != 1 or given.at is not None or not given.is_plain:
        return False
    size = nest.extents[spread[0]]
    return symbols_of(size) == {nest.axis} and not any(
        spread[0] in symbols_of(index) or mentions(nest.sizes.spell(index), nest.axis) for index in view.indices
    )


def _spread(nest: Nest) -> int:
    return next(p for p, extent in enumerate(nest.extents.values()) if mentions(extent, nest.axis))


def _size(buffer: ir.Buffer, at: At | None, sizes: Sizes) -> Integer:
    return sizes.spell(buffer.shape[at.dimension if at else 0]) if buffer.shape else sizes.spell(ONE)


def _in_order(kernel: ir.Kernel, scope: _Scope) -> list[ir.Store]:
    for statement in statements(kernel):
        if not isinstance(statement, ir.Store):
            scope.bind(statement)
    return list(kernel.stores)


@dataclass
class _Scope:
    """The values of a kernel."""

    kernel: ir.Kernel
    lies: Mapping[str, Lies]
    along: Along | None
    locals: dict[str, Value] = field(default_factory=dict)

    def value(self, expression: Expression) -> Value:
        match expression:
            case Literal(value=number):
                return Value(is_zero=number == 0)
            case Load(buffer=buffer, indices=indices):
                return self._loaded(buffer, indices)
            case Local(name=name):
                return self.locals[name]
            case Apply(function=function, operands=operands):
                return combined(function, [self.value(operand) for operand in operands])
            case Cast(operand=operand, dtype=dtype):
                return converted(self.value(operand), operand.dtype, dtype)
            case _:
                assert_never(expression)

    def _loaded(self, buffer: str, indices: tuple[Integer, ...]) -> Value:
        if buffer not in self.lies:
            return Value("unknown", why=f"{self.kernel.name} reads what it writes")
        lies = self.lies[buffer]
        gathered = any(name in self.locals and self.locals[name].along for i in indices for name in symbols_of(i))
        along = lies.at is not None or gathered
        return Value(lies.kind, lies.power, along, is_zero=lies.is_zero, why=lies.why)

    def bind(self, statement: ir.Binding) -> None:
        value = self.value(statement.value)
        match statement:
            case ir.Let():
                self.locals[statement.name] = value
            case ir.Reduce(function=function):
                self.locals[statement.name] = reduced(function, value, self._is_row)
            case ir.Gather():
                plain = value.is_plain
                self.locals[statement.name] = value if plain else Value("unknown", why="an index depends on it")
            case _:
                assert_never(statement)

    @property
    def _is_row(self) -> bool:
        return self.along is not None and any(axis.name == self.along.name for axis in row_axes(self.kernel))

    def stored(self, store: ir.Store, nest: Nest) -> Lies:
        value = self.value(store.value)
        along = self.along
        dimensions = [
            p for p, index in enumerate(store.indices) if along is not None and along.name in symbols_of(index)
        ]
        if any(mentions(nest.sizes.spell(index), nest.axis) for index in store.indices):
            raise NotAlong("it writes at a place that depends on the size of the axis")
        if along is None or not dimensions:
            over = along is not None and not self._is_row
            if store.reduction is not None:
                value = reduced(store.reduction, value, over)
            elif value.along:
                raise NotAlong("it keeps one element of the axis")
            return self._lies(value, None)
        if len(dimensions) > 1 or store.indices[dimensions[0]] != symbol(along.name):
            raise NotAlong("it writes otherwise than along the axis")
        if store.reduction is not None:
            value = reduced(store.reduction, value, over_axis=False)
        if value.kind in ("sum", "maximum", "minimum"):
            raise NotAlong(f"a {value.kind} over the axis is used along it again")
        return self._lies(value, At(dimensions[0], along.inner, along.outer))

    def _lies(self, value: Value, at: At | None) -> Lies:
        if value.kind == "unknown":
            return unknown(f"{self.kernel.name}: {value.why}")
        return Lies(value.kind, at, value.power, is_zero=value.is_zero)
