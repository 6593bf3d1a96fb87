"""Lowering: Graph → Program.

Every element-wise operation becomes a kernel of its own, every view an index map, everything else a library call; the
passes fuse them later. Nothing is refused that torch can trace and kernels can hold.

What is computed of a half type is held in a float32 buffer ("wide") and rounded where torch's own value must be seen:
in memory, which is what outputs, operands of library operations and what is saved for the backward pass are; where it
is compared, since a mask such as `x == x.amax()` must agree with what was stored; and where the user converts.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from opwright.errors import NoKernel
from opwright.ir.dtype import DType
from opwright.ir.expression import Expression, Literal, Load, apply, cast
from opwright.ir.integer import ONE, ZERO, Condition, Integer, linear_coefficients, substitute, symbol
from opwright.ir.program import Axis, Buffer, Call, Kernel, Number, Program, Step, Store, View, view_axes
from opwright.lowering.bind_sizes import bind_sizes
from opwright.lowering.calls import named_arguments, operands_of
from opwright.lowering.complex import COMPLEX, Part, selected_part
from opwright.lowering.equal_sizes import EqualSizes
from opwright.lowering.names import Names
from opwright.lowering.pointwise import POINTWISE, Pointwise
from opwright.lowering.promotion import program_dtype, promoted
from opwright.lowering.views import VIEWS, Indices, split_indices
from opwright.tracing.graph import Graph, value_of

aten = torch.ops.aten


def lower(
    graph: Graph,
    name: str,
    inputs: Sequence[tuple[str, Node]],
    outputs: Sequence[tuple[str, Node]],
    guards: Sequence[Condition] = (),
) -> Program:
    """Lower the part of a graph that computes `outputs` from `inputs`.

    Args:
        graph: The traced graph.
        name: What the Program is called.
        inputs: Nodes that are given, with the names of their buffers.
        outputs: Nodes that are asked for, with the names they would like.
        guards: For which sizes the result is valid.

    Raises:
        NoKernel: If kernels cannot hold a dtype in it.
    """
    return _Lowering(graph, name, {node: given for given, node in inputs}, outputs, tuple(guards)).program()


@dataclass
class _Lowering:
    graph: Graph
    name: str
    inputs: Mapping[Node, str]
    outputs: Sequence[tuple[str, Node]]
    guards: tuple[Condition, ...]
    steps: list[Step] = field(default_factory=list)
    buffers: dict[Node, Buffer] = field(default_factory=dict)
    numbers: dict[Integer, Buffer] = field(default_factory=dict)
    views: dict[str, tuple[Buffer, Indices]] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    rounded: dict[str, Buffer] = field(default_factory=dict)

    def program(self) -> Program:
        self.equal = EqualSizes(self.graph.guards)
        self.names = Names(self.graph, self.inputs, self.outputs)
        self.results = {node for _, node in self.outputs}
        for node, name in self.inputs.items():
            self.buffers[node] = Buffer(name, program_dtype(value_of(node).dtype), self._shape(node))
        for node in _needed(self.graph, self.inputs, [node for _, node in self.outputs]):
            self._lower(node)
        results: list[str] = []
        for name, node in self.outputs:
            results.append(self._result(name, node, taken=results))
        given = tuple(self.buffers[node] for node in self.inputs)
        return bind_sizes(
            Program(self.name, given, (), tuple(self.steps), tuple(results), self.equal.guards(self.guards))
        )

    def _shape(self, node: Node) -> tuple[Integer, ...]:
        return tuple(self._size(size) for size in value_of(node).shape)

    def _size(self, size: int | torch.SymInt) -> Integer:
        return self.equal.spell(self.graph.sizes.integer(size))

    def _buffer(self, node: Node) -> Buffer:
        value = value_of(node)
        spoken = node in self.graph.names
        return Buffer(self.names.of(node), program_dtype(value.dtype), self._shape(node), spoken)

    def _lower(self, node: Node) -> None:
        if node.target is operator.getitem:
            return  # declared together with the operation it takes from
        func = node.target
        assert isinstance(func, OpOverload)
        arguments = named_arguments(func, node)
        packet = func.overloadpacket
        if packet in (aten.split_with_sizes, aten.split):
            self._split(node, arguments)
        elif packet is aten.cat:
            self._cat(node, arguments)
        elif packet is aten.view_as_complex:
            self._view_as_complex(node, arguments)
        elif packet is aten.view_as_real and node not in self.results and all(map(self._part, node.users)):
            return  # each of the two parts is computed by itself
        elif (part := self._part(node)) is not None:
            self._pointwise(node, part.row, {"self": part.whole})
        elif (packet in VIEWS and self._view(node, arguments)) or (
            (row := _row(node, arguments)) is not None and self._pointwise(node, row, arguments)
        ):
            return
        elif packet in _RESHAPES and func is not aten.view.dtype:
            self._call(node, aten.reshape.default)  # whatever the strides, which may be others than in the trace
        else:
            self._call(node, func)

    def _part(self, node: Node) -> Part | None:
        part = selected_part(node)
        return None if part is None or part.pair in self.inputs else part

    def _declare(self, node: Node, dtype: DType | None = None) -> Buffer:
        buffer = self._buffer(node)
        self.buffers[node] = replace(buffer, dtype=dtype or buffer.dtype)
        return self.buffers[node]

    def _stored(self, node: Node) -> Buffer:
        """A value as it is in memory: rounded, if it was computed wide."""
        dtype = program_dtype(value_of(node).dtype)
        buffer = self.buffers[node]
        return buffer if buffer.dtype is dtype else self._rounded(buffer, dtype)

    def _rounded(self, wide: Buffer, dtype: DType) -> Buffer:
        if wide.name in self.rounded:
            return self.rounded[wide.name]
        target = Buffer(self.names.fresh(f"{wide.name}_{dtype.value}"), dtype, wide.shape)
        if wide.name in self.views:
            base, through = self.views[wide.name]
            self.steps.append(View(target, self._rounded(base, dtype).name, through))
        else:
            axes, indices = _over(target.shape)
            value = cast(Load(wide.name, indices, wide.dtype), dtype)
            self.steps.append(Kernel(target.name, (target,), axes, (), (Store(target.name, indices, value),)))
        self.rounded[wide.name] = target
        return target

    def _pointwise(self, node: Node, row: Pointwise, arguments: Mapping[str, Any]) -> bool:
        values = [arguments[name] for name in row.operands]
        dtype = program_dtype(value_of(node).dtype)
        common = promoted([_promotable(value) for value in values]) if row.compares else dtype
        parameters = {key: value for key, value in arguments.items() if key in _PARAMETERS}
        if not row.computes_in(common) or any(isinstance(value, Node | Integer) for value in parameters.values()):
            return False
        packet, (axes, _) = _packet(node), _over(self._shape(node))
        if packet in _COPIES and (moved := self._operand(values[0], axes)).dtype is dtype:
            self._compute(node, moved)
            return True
        discrete = row.compares or not (dtype.is_floating or dtype.is_complex)
        converted = [
            cast(self._operand(value, axes), DType.BOOL)
            if row.selects and position == 0
            else self._converted(value, axes, common, rounded=discrete)
            for position, value in enumerate(values)
        ]
        result = row.rule(*converted, **parameters)
        if packet in _CONVERSIONS:
            result = cast(result, dtype)
        self._compute(node, cast(result, dtype.computed))
        return True

    def _compute(self, node: Node, value: Expression) -> None:
        target = self._declare(node, value.dtype)
        axes, indices = _over(target.shape)
        self.steps.append(Kernel(target.name, (target,), axes, (), (Store(target.name, indices, value),)))

    def _converted(self, value: Any, axes: Sequence[Axis], common: DType, *, rounded: bool) -> Expression:
        """An operand in what the operation computes in; `rounded` to its own dtype and to the common one first."""
        operand = self._operand(value, axes)
        if rounded and isinstance(value, Node):
            operand = cast(operand, program_dtype(value_of(value).dtype))
        return cast(cast(operand, common) if rounded else operand, common.computed)

    def _operand(self, value: Any, axes: Sequence[Axis]) -> Expression:
        if isinstance(value, Integer) and value.constant is None:
            return self._number(value)
        if not isinstance(value, Node):
            return _literal(value)
        buffer = self.buffers[value]
        aligned = axes[len(axes) - len(buffer.shape) :]
        indices = tuple(
            ZERO if size == ONE else symbol(axis.name) for size, axis in zip(buffer.shape, aligned, strict=True)
        )
        return Load(buffer.name, indices, buffer.dtype)

    def _number(self, value: Integer) -> Expression:
        if value not in self.numbers:
            self.numbers[value] = Buffer(self.names.fresh("size"), DType.INT64, ())
            self.steps.append(Number(self.numbers[value], value))
        return Load(self.numbers[value].name, (), DType.INT64)

    def _view(self, node: Node, arguments: Mapping[str, Any]) -> bool:
        if value_of(arguments["self"]).dtype is not value_of(node).dtype:
            return False
        source = self.buffers[arguments["self"]]
        indices = VIEWS[_packet(node)](source.shape, self._shape(node), arguments)
        axes = view_axes(len(self._shape(node)))
        if indices is None or any(linear_coefficients(index, axes) is None for index in indices):
            return False
        self._see(node, source, indices)
        return True

    def _see(self, node: Node, source: Buffer, indices: Indices) -> None:
        """Declare a view, of what lies in memory rather than of another view; one that changes nothing is its base."""
        base, through = self.views.get(source.name, (source, None))
        if through is not None:
            at = dict(zip(view_axes(len(indices)), indices, strict=True))
            indices = tuple(substitute(index, at) for index in through)
        shape = self._shape(node)
        if shape == base.shape and indices == tuple(symbol(axis) for axis in view_axes(len(shape))):
            self.buffers[node] = base
            return
        target = self._declare(node, base.dtype)
        self.views[target.name] = (base, indices)
        self.steps.append(View(target, base.name, indices))

    def _view_as_complex(self, node: Node, arguments: Mapping[str, Any]) -> None:
        source, (_, indices) = self.buffers[arguments["self"]], _over(self._shape(node))
        parts = (Load(source.name, (*indices, part), source.dtype) for part in (ZERO, ONE))
        self._compute(node, apply("complex", *parts))

    def _split(self, node: Node, arguments: Mapping[str, Any]) -> None:
        source = self.buffers[arguments["self"]]
        dimension = arguments.get("dim", 0) % len(source.shape)
        offset = ZERO
        for piece in sorted(node.users, key=_position):
            offset = self._offset(node, piece, dimension)
            self._see(piece, source, split_indices(source.shape, self._shape(piece), dimension, offset))

    def _offset(self, node: Node, piece: Node, dimension: int) -> Integer:
        before = node.meta["val"][: _position(piece)]
        return sum((self._size(member.shape[dimension]) for member in before), ZERO)

    def _cat(self, node: Node, arguments: Mapping[str, Any]) -> None:
        """One kernel for each piece, all storing into one buffer."""
        target = self._declare(node)
        pieces = [self.buffers[piece] for piece in arguments["tensors"]]
        pieces = [piece for piece in pieces if len(piece.shape) == len(target.shape)]
        dimension = arguments.get("dim", 0) % len(target.shape)
        offset = ZERO
        for position, piece in enumerate(pieces):
            axes = tuple(Axis(f"i{d}", size) for d, size in enumerate(piece.shape))
            indices = [symbol(axis.name) for axis in axes]
            value = cast(Load(piece.name, tuple(indices), piece.dtype), target.dtype)
            indices[dimension] = indices[dimension] + offset
            store = Store(target.name, tuple(indices), value)
            declared = (target,) if position == 0 else ()
            self.steps.append(Kernel(f"{target.name}_{position}", declared, axes, (), (store,)))
            offset = offset + piece.shape[dimension]

    def _call(self, node: Node, func: OpOverload) -> None:
        targets = tuple(self._declare(member) for member in _members(func, node))
        if any(returned.alias_info is not None for returned in func._schema.returns):
            self.aliases.update(target.name for target in targets)
        operands = operands_of(func, node, {source: self._stored(source) for source in node.all_input_nodes})
        self.steps.append(Call(targets, func._schema.name, func._schema.overload_name, operands))

    def _result(self, name: str, node: Node, taken: Sequence[str]) -> str:
        """An output is a buffer of its own: copy what is an input, a view, or returned already."""
        buffer = self._stored(node)
        own = {target.name for step in self.steps if isinstance(step, Kernel | Call) for target in step.targets}
        if buffer.name in own - self.aliases and buffer.name not in taken:
            return buffer.name
        copy = Buffer(self.names.fresh(name), buffer.dtype, buffer.shape)
        axes, indices = _over(copy.shape)
        store = Store(copy.name, indices, Load(buffer.name, indices, buffer.dtype))
        self.steps.append(Kernel(copy.name, (copy,), axes, (), (store,)))
        return copy.name


# What rounds to a half type because the user asks for it. Torch's decompositions convert with `aten.to`, and computing
# on in float32 is what they do it for.
_CONVERSIONS = {aten._to_copy, aten.copy, aten.fill, aten.full, aten.full_like, aten.scalar_tensor}
_COPIES = {aten.clone, aten.to, aten._to_copy, aten.positive, aten.copy}
_RESHAPES = {aten.view, aten._unsafe_view, aten.reshape}
_PARAMETERS = {
    "alpha", "scale", "input_scale", "negative_slope", "approximate", "min", "max", "min_val", "max_val",
    "rounding_mode",
}  # fmt: skip


def _packet(node: Node) -> Any:
    assert isinstance(node.target, OpOverload)
    return node.target.overloadpacket


def _row(node: Node, arguments: Mapping[str, Any]) -> Pointwise | None:
    values = [v.meta["val"] if isinstance(v, Node) else v for v in (node, *arguments.values())]
    has_complex = any(isinstance(v, complex) or (isinstance(v, torch.Tensor) and v.is_complex()) for v in values)
    return (COMPLEX if has_complex else POINTWISE).get(_packet(node))


def _over(shape: Sequence[Integer]) -> tuple[tuple[Axis, ...], tuple[Integer, ...]]:
    """The axes of a kernel that computes a whole buffer, and where it stores."""
    axes = tuple(Axis(f"i{dimension}", size) for dimension, size in enumerate(shape))
    return axes, tuple(symbol(axis.name) for axis in axes)


def _literal(value: Any) -> Expression:
    if isinstance(value, bool):
        return Literal(value, DType.BOOL)
    if isinstance(value, complex):
        return Literal(value, DType.COMPLEX128)
    if isinstance(value, Integer):
        value = value.constant
    return Literal(value, DType.INT64 if isinstance(value, int) else DType.FLOAT64)


def _promotable(value: Any) -> Any:
    """A tensor, or a number of the same type, for torch's promotion rules."""
    if isinstance(value, Integer):
        return 1
    return value_of(value) if isinstance(value, Node) else value


def _position(member: Node) -> int:
    position = member.args[1]
    assert isinstance(position, int)
    return position


def _members(func: OpOverload, node: Node) -> list[Node]:
    """The results of a library operation, all of them, in order."""
    if not isinstance(node.meta["val"], (tuple, list)):
        return [node]
    members = sorted(node.users, key=_position)
    if [_position(member) for member in members] != list(range(len(func._schema.returns))):
        raise NoKernel(f"{func.name()} leaves out some of its results")
    return members


def _needed(graph: Graph, inputs: Mapping[Node, str], outputs: Sequence[Node]) -> list[Node]:
    """The nodes between inputs and outputs, in order of execution; dead code stays out."""
    wanted: set[Node] = set()
    pending = list(outputs)
    while pending:
        node = pending.pop()
        if node in wanted or node in inputs:
            continue
        wanted.add(node)
        pending.extend(node.all_input_nodes)
    return [node for node in graph.fx.nodes if node in wanted]
