"""Lowering: Graph → Program.

Every element-wise operation becomes a kernel of its own, every view an index map, everything else a library call; the
passes fuse them later. Nothing is refused that torch can trace and kernels can hold.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from opwright.errors import NoKernel
from opwright.ir.call_traits import has_effect
from opwright.ir.dtype import DType
from opwright.ir.expression import Expression, Literal, Load, apply, cast
from opwright.ir.integer import ONE, ZERO, Condition, Integer, linear_coefficients, substitute, symbol
from opwright.ir.program import Axis, Buffer, Call, Kernel, Number, Program, Range, Step, Store, View, view_axes
from opwright.lowering.bind_sizes import bind_sizes
from opwright.lowering.calls import named_arguments, operands_of
from opwright.lowering.equal_sizes import EqualSizes
from opwright.lowering.names import Names
from opwright.lowering.pointwise import POINTWISE
from opwright.lowering.promotion import program_dtype, promoted
from opwright.lowering.reductions import REDUCTIONS, fold_kernel, reduced_dimensions
from opwright.lowering.views import VIEWS, Indices, split_indices
from opwright.tracing.graph import Graph, value_of
from opwright.tracing.numbers import NUMBER
from opwright.tracing.reals import Real

aten = torch.ops.aten
prims = torch.ops.prims


def lower(
    graph: Graph,
    name: str,
    inputs: Sequence[tuple[str, Node]],
    outputs: Sequence[tuple[str, Node]],
    guards: Sequence[Condition] = (),
    *,
    effects: bool = True,
) -> Program:
    """Lower the part of a graph that computes `outputs` from `inputs`.

    Args:
        graph: The traced graph.
        name: What the Program is called.
        inputs: Nodes that are given, with the names of their buffers.
        outputs: Nodes that are asked for, with the names they would like.
        guards: For which sizes the result is valid.
        effects: Whether to keep what draws random numbers or checks values though nothing reads its results.

    Raises:
        NoKernel: If kernels cannot hold a dtype in it.
    """
    return _Lowering(graph, name, {node: given for given, node in inputs}, outputs, tuple(guards), effects).program()


@dataclass
class _Lowering:
    graph: Graph
    name: str
    inputs: Mapping[Node, str]
    outputs: Sequence[tuple[str, Node]]
    guards: tuple[Condition, ...]
    effects: bool
    steps: list[Step] = field(default_factory=list)
    buffers: dict[Node, Buffer] = field(default_factory=dict)
    numbers: dict[Integer, Buffer] = field(default_factory=dict)
    views: dict[str, tuple[Buffer, Indices]] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)

    def program(self) -> Program:
        self.equal = EqualSizes(self.graph.guards)
        self.names = Names(self.graph, self.inputs, self.outputs)
        for node, name in self.inputs.items():
            self.buffers[node] = Buffer(name, program_dtype(value_of(node).dtype), self._shape(node))
        wanted = [node for _, node in self.outputs]
        if self.effects:
            wanted += _effects(self.graph, self.inputs)
        for node in _needed(self.graph, self.inputs, wanted):
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
        elif func is prims.iota.default:
            self.steps.append(Range(self._declare(node)))
        elif any(lowered(packet, node, arguments) for lowered in (self._reduction, self._view, self._pointwise)):
            return
        elif packet in _RESHAPES:
            self._call(node, aten.reshape.default)  # whatever the strides, which may be others than in the trace
        else:
            self._call(node, func)

    def _declare(self, node: Node) -> Buffer:
        self.buffers[node] = self._buffer(node)
        return self.buffers[node]

    def _pointwise(self, packet: Any, node: Node, arguments: Mapping[str, Any]) -> bool:
        row = POINTWISE.get(packet)
        if row is None:
            return False
        values = [arguments[name] for name in row.operands]
        compute = program_dtype(value_of(node).dtype)
        if row.compares:
            compute = promoted([_promotable(value) for value in values])
        rest = {key: value for key, value in arguments.items() if key not in row.operands and key not in _WITHOUT_VALUE}
        if not row.computes_in(compute) or not rest.keys() <= _PARAMETERS:
            return False
        axes = tuple(Axis(f"i{dimension}", size) for dimension, size in enumerate(self._shape(node)))
        operands = [self._operand(value, axes) for value in values]
        parameters = {
            key: self._operand(value, axes) if isinstance(value, Node | Integer | Real) else value
            for key, value in rest.items()
        }
        converted = [
            operand if row.selects and position == 0 else cast(operand, compute)
            for position, operand in enumerate(operands)
        ]
        value = row.rule(*converted, **parameters)
        if value is None:
            return False
        target = self._declare(node)
        result = cast(value, target.dtype)
        indices = tuple(symbol(axis.name) for axis in axes)
        self.steps.append(Kernel(target.name, (target,), axes, (), (Store(target.name, indices, result),)))
        return True

    def _operand(self, value: Any, axes: Sequence[Axis]) -> Expression:
        if isinstance(value, Integer) and value.constant is None:
            return self._number(value)
        if isinstance(value, Real):
            return apply(
                value.function, *(cast(self._operand(member, axes), DType.FLOAT64) for member in value.operands)
            )
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

    def _view(self, packet: Any, node: Node, arguments: Mapping[str, Any]) -> bool:
        if packet not in VIEWS:
            return False
        source = self.buffers[arguments["self"]]
        indices = VIEWS[packet](source.shape, self._shape(node), arguments)
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
        target = self._declare(node)
        self.views[target.name] = (base, indices)
        self.steps.append(View(target, base.name, indices))

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

    def _reduction(self, packet: Any, node: Node, arguments: Mapping[str, Any]) -> bool:
        """A kernel whose rows are what is folded; along other dimensions than the last, a folding store."""
        row = REDUCTIONS.get(packet)
        if row is None or isinstance(node.meta["val"], (tuple, list)):  # values and positions
            return False
        source = self.buffers[arguments["self"]]
        target = self._declare(node)
        reduced = reduced_dimensions(arguments, len(source.shape))
        self.steps.append(fold_kernel(source, target, row, reduced, keep=bool(arguments.get("keepdim", False))))
        return True

    def _call(self, node: Node, func: OpOverload) -> None:
        if any(NUMBER in source.meta for source in node.all_input_nodes):
            raise NoKernel(f"{func.name()} takes a number that changes from call to call")
        targets = self._results(func, node)
        if any(returned.alias_info is not None for returned in func._schema.returns):
            self.aliases.update(target.name for target in targets)
        operands = operands_of(func, node, self.buffers)
        self.steps.append(Call(targets, func._schema.name, func._schema.overload_name, operands))

    def _results(self, func: OpOverload, node: Node) -> tuple[Buffer, ...]:
        """Declare the results of a library operation, in order; those that nobody takes too.

        Raises:
            NoKernel: If they come as a list, which has no length of its own in a Program.
        """
        values = node.meta["val"]
        if not isinstance(values, (tuple, list)):
            return (self._declare(node),)
        if len(values) != len(func._schema.returns):
            raise NoKernel(f"{func.name()} gives a list of tensors")
        taken = {_position(member): self._declare(member) for member in node.users}
        return tuple(taken.get(position) or self._unused(node, value) for position, value in enumerate(values))

    def _unused(self, node: Node, value: torch.Tensor | None) -> Buffer:
        if value is None:
            return Buffer(self.names.fresh(f"no_{node.name}"), DType.INT64, ())
        shape = tuple(self._size(size) for size in value.shape)
        return Buffer(self.names.fresh(f"unused_{node.name}"), program_dtype(value.dtype), shape)

    def _result(self, name: str, node: Node, taken: Sequence[str]) -> str:
        """An output is a buffer of its own: copy what is an input, a view, or returned already."""
        buffer = self.buffers[node]
        own = {target.name for step in self.steps if isinstance(step, Kernel | Call) for target in step.targets}
        if buffer.name in own - self.aliases and buffer.name not in taken:
            return buffer.name
        copy = Buffer(self.names.fresh(name), buffer.dtype, buffer.shape)
        axes = tuple(Axis(f"i{dimension}", size) for dimension, size in enumerate(copy.shape))
        indices = tuple(symbol(axis.name) for axis in axes)
        store = Store(copy.name, indices, Load(buffer.name, indices, buffer.dtype))
        self.steps.append(Kernel(copy.name, (copy,), axes, (), (store,)))
        return copy.name


_RESHAPES = {aten.view, aten._unsafe_view, aten.reshape}
_PARAMETERS = {
    "alpha", "scale", "input_scale", "negative_slope", "approximate", "min", "max", "min_val", "max_val",
    "rounding_mode", "decimals",
}  # fmt: skip
# Arguments that say nothing about values, or only about the shape and dtype that the trace has seen.
_WITHOUT_VALUE = {
    "self", "size", "dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "copy",
    "physical_layout",
}  # fmt: skip


def _literal(value: Any) -> Expression:
    if isinstance(value, bool):
        return Literal(value, DType.BOOL)
    if isinstance(value, Integer):
        value = value.constant
    return Literal(value, DType.INT64 if isinstance(value, int) else DType.FLOAT64)


def _promotable(value: Any) -> Any:
    """A tensor, or a number of the same type, for torch's promotion rules."""
    if isinstance(value, Integer):
        return 1
    if isinstance(value, Real) or (isinstance(value, Node) and NUMBER in value.meta):
        return 1.0
    return value_of(value) if isinstance(value, Node) else value


def _position(member: Node) -> int:
    position = member.args[1]
    assert isinstance(position, int)
    return position


def _effects(graph: Graph, inputs: Mapping[Node, str]) -> list[Node]:
    """What does more than give results, and can be computed from the inputs."""
    reached: set[Node] = set(inputs)
    for node in graph.fx.nodes:
        if node.op != "placeholder" and all(source in reached for source in node.all_input_nodes):
            reached.add(node)
    return [
        node
        for node in graph.fx.nodes
        if node in reached and isinstance(node.target, OpOverload) and has_effect(node.target._schema.name)
    ]


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
