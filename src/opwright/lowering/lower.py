"""Lowering: Graph → Program.

Every element-wise operation becomes a kernel of its own, every view an index map, everything else a library call;
passes fuse kernels later. Whatever torch can trace and kernels can hold is lowered.

A half-type result is held in a float32 buffer ("wide") and rounded where torch's rounded value is visible: in outputs,
operands of library operations and most tensors saved for backward; in comparisons, since a mask such as `x == x.amax()`
must agree with what was stored; and in the user's own conversions. Saved tensors that are small beside the arguments,
such as row reductions, are not rounded: the backward pass then uses the exact values of the forward pass.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from opwright.errors import NoKernel, NumberNeeded
from opwright.ir.expressions.affine import linear_coefficients
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Load, apply, cast
from opwright.ir.expressions.integer import ONE, ZERO, Condition, Integer, substitute, symbol
from opwright.ir.program import Axis, Buffer, Call, Iota, Kernel, Number, Program, Step, Store, View, view_axes
from opwright.ir.relations.equal_sizes import EqualSizes
from opwright.lowering.bind_sizes import bind_sizes
from opwright.lowering.calls import call_of, named_arguments
from opwright.lowering.draws import drawn_in_order
from opwright.lowering.join import joined, parts_of, piece_of
from opwright.lowering.names import Names
from opwright.lowering.nodes import (
    CONVERSIONS,
    COPIES,
    FILLS,
    RESHAPES,
    effects_of,
    literal,
    needed_nodes,
    over,
    packet_of,
    parameters_of,
    position_of,
    promotable,
    row_of,
)
from opwright.lowering.pointwise.complex import Part, selected_part
from opwright.lowering.pointwise.promotion import program_dtype, promoted
from opwright.lowering.pointwise.row import PARAMETERS, WITHOUT_VALUE, Pointwise, holds
from opwright.lowering.reductions import REDUCTIONS, reduce_kernel, reduced_dimensions
from opwright.lowering.views import VIEWS, Indices, split_indices
from opwright.tracing.graph import Graph, value_of
from opwright.tracing.interface.orders import Order
from opwright.tracing.scalars.numbers import NUMBER
from opwright.tracing.scalars.reals import Real

aten, prims = torch.ops.aten, torch.ops.prims


def lower(
    graph: Graph,
    name: str,
    inputs: Sequence[tuple[str, Node]],
    outputs: Sequence[tuple[str, Node]],
    guards: Sequence[Condition] = (),
    *,
    effects: bool = True,
    unrounded: Set[str] = frozenset(),
    rounded: Set[Node] = frozenset(),
    orders: Mapping[Node, Order] | None = None,
) -> Program:
    """Lower the part of a graph that computes `outputs` from `inputs`.

    Args:
        graph: The traced graph.
        name: What the Program is called.
        inputs: The input nodes, with the names of their buffers.
        outputs: The output nodes, with the names they would like.
        guards: For which sizes the result is valid.
        effects: Whether to keep random operations and checks whose results nobody reads.
        unrounded: Names of inputs and outputs of half types that are passed in float32, unrounded.
        rounded: Values of half types that are rounded where they are computed.
        orders: In which order dimensions of values will lie in memory, and of others of the same shapes.

    Raises:
        NoKernel: If kernels cannot hold a dtype in it.
    """
    given = {node: name for name, node in inputs}
    return Lowering(graph, name, given, outputs, tuple(guards), effects, unrounded, rounded, orders or {}).program()


@dataclass
class Lowering:
    """What `lower` does; afterwards `buffers` tells what each node is computed into."""

    graph: Graph
    name: str
    inputs: Mapping[Node, str]
    outputs: Sequence[tuple[str, Node]]
    guards: tuple[Condition, ...]
    effects: bool
    unrounded: Set[str]
    rounded_here: Set[Node]
    orders: Mapping[Node, Order]
    steps: list[Step] = field(default_factory=list)
    buffers: dict[Node, Buffer] = field(default_factory=dict)
    numbers: dict[Integer, Buffer] = field(default_factory=dict)
    views: dict[str, tuple[Buffer, Indices]] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    rounded: dict[str, Buffer] = field(default_factory=dict)
    ranges: set[str] = field(default_factory=set)

    def program(self) -> Program:
        """Lower it."""
        self.equal = EqualSizes(self.graph.guards)
        self.names = Names(self.graph, self.inputs, self.outputs)
        self.results = {node for _, node in self.outputs}
        self.orders_by_shape = {self._shape(node): order for node, order in self.orders.items() if order}
        for node, name in self.inputs.items():
            dtype = program_dtype(value_of(node).dtype)
            self.buffers[node] = Buffer(name, dtype.computed if name in self.unrounded else dtype, self._shape(node))
        effects = effects_of(self.graph, self.inputs) if self.effects else []
        for node in needed_nodes(self.graph, self.inputs, [*(node for _, node in self.outputs), *effects]):
            self._lower(node)
        results: list[str] = []
        for name, node in self.outputs:
            results.append(self._result(name, node, taken=results))
        inputs = tuple(self.buffers[node] for node in self.inputs)
        return bind_sizes(Program(self.name, inputs, (), tuple(self.steps), tuple(results), self.guards))

    def _shape(self, node: Node) -> tuple[Integer, ...]:
        return tuple(self._size(size) for size in value_of(node).shape)

    def _size(self, size: int | torch.SymInt) -> Integer:
        return self.equal.spell(self.graph.sizes.integer(size))

    def _lower(self, node: Node) -> None:
        if node.target is operator.getitem or node in self.buffers:
            return  # declared together with the operation it takes from
        func, packet = node.target, packet_of(node)
        assert isinstance(func, OpOverload)
        arguments = named_arguments(func, node)
        if packet in (aten.split_with_sizes, aten.split):
            self._split(node, arguments)
        elif packet is aten.cat:
            self._cat(node, arguments)
        elif func is prims.iota.default:
            self.steps.append(Iota(self._declare(node)))
            self.ranges.add(self.buffers[node].name)
        elif packet is aten.view_as_complex:
            self._view_as_complex(node, arguments)
        elif packet is aten.view_as_real and node not in self.results and all(map(self._part, node.users)):
            return  # each of the two parts is computed by itself
        elif packet is aten.view_as_real and self._is_computed(arguments["self"]):
            whole = self.buffers[arguments["self"]]
            self.steps += joined(self._declare(node), parts_of(whole), len(whole.shape))
        elif (part := self._part(node)) is not None:
            self._pointwise(node, part.row, {"self": part.whole})
        elif any(lowered(node, arguments) for lowered in (self._reduction, self._view, self._element_wise)):
            return
        elif packet in RESHAPES and func is not aten.view.dtype:
            self._call(node, aten.reshape.default)  # whatever the strides, which may be others than in the trace
        else:
            self._call(node, func)

    def _is_computed(self, node: Node) -> bool:
        """Whether kernels compute a value that is no result, so that it need not be in memory."""
        stored = {step.stores[0].buffer for step in self.steps if isinstance(step, Kernel)}
        return node not in self.results and self.buffers[node].name in stored

    def _part(self, node: Node) -> Part | None:
        part = selected_part(node)
        return None if part is None or part.pair in self.inputs else part

    def _declare(self, node: Node, dtype: DType | None = None) -> Buffer:
        dtype, spoken = dtype or program_dtype(value_of(node).dtype), node in self.graph.names
        self.buffers[node] = Buffer(self.names.of(node), dtype, self._shape(node), spoken)
        return self.buffers[node]

    def _stored(self, node: Node) -> Buffer:
        """The value in memory: rounded, if it was computed wide."""
        dtype = program_dtype(value_of(node).dtype)
        buffer = self.buffers[node]
        return buffer if buffer.dtype is dtype else self._rounded(buffer, dtype)

    def _in_memory(self, node: Node) -> Buffer:
        """The value as a library operation reads it: an iota is written to memory first."""
        buffer = self._stored(node)
        base, _ = self.views.get(buffer.name, (buffer, None))
        return self._copy(node.name, buffer) if base.name in self.ranges else buffer

    def _copy(self, name: str, buffer: Buffer) -> Buffer:
        copy = Buffer(self.names.fresh(name), buffer.dtype, buffer.shape)
        axes, indices = over(copy.shape)
        store = Store(copy.name, indices, Load(buffer.name, indices, buffer.dtype))
        self.steps.append(Kernel(copy.name, (copy,), axes, (), (store,)))
        return copy

    def _rounded(self, wide: Buffer, dtype: DType) -> Buffer:
        if wide.name in self.rounded:
            return self.rounded[wide.name]
        target = Buffer(self.names.fresh(f"{wide.name}_{dtype.value}"), dtype, wide.shape)
        if wide.name in self.views:
            base, through = self.views[wide.name]
            self.steps.append(View(target, self._rounded(base, dtype).name, through))
        else:
            axes, indices = over(target.shape)
            value = cast(Load(wide.name, indices, wide.dtype), dtype)
            self.steps.append(Kernel(target.name, (target,), axes, (), (Store(target.name, indices, value),)))
        self.rounded[wide.name] = target
        return target

    def _element_wise(self, node: Node, arguments: Mapping[str, Any]) -> bool:
        row = row_of(node, arguments)
        return row is not None and self._pointwise(node, row, arguments)

    def _pointwise(self, node: Node, row: Pointwise, arguments: Mapping[str, Any]) -> bool:
        values = [arguments[name] for name in row.operands]
        dtype = program_dtype(value_of(node).dtype)
        common = promoted([promotable(value) for value in values]) if row.compares else dtype
        rest = {key: value for key, value in arguments.items() if key not in row.operands and key not in WITHOUT_VALUE}
        if not row.computes_in(common) or not rest.keys() <= PARAMETERS:
            return False
        packet, (axes, _) = packet_of(node), over(self._shape(node))
        numbers = [*(values if row.selects or packet in FILLS else ()), *rest.values()]
        if not all(holds(dtype, number) for number in numbers):
            return False
        if packet in COPIES and (moved := self._operand(values[0], axes)).dtype is dtype:
            self._compute(node, moved)
            return True
        discrete = row.compares or not (dtype.is_floating or dtype.is_complex)
        converted = [
            cast(self._operand(value, axes), DType.BOOL)
            if row.selects and position == 0
            else self._converted(value, axes, common, rounded=discrete)
            for position, value in enumerate(values)
        ]
        parameters = {
            key: self._operand(value, axes) if isinstance(value, Node | Integer | Real) else value
            for key, value in rest.items()
        }
        result = row.rule(*converted, **parameters)
        if result is None:
            return False
        if packet in CONVERSIONS or node in self.rounded_here:
            result = cast(result, dtype)
        self._compute(node, cast(result, dtype.computed))
        return True

    def _compute(self, node: Node, value: Expression) -> None:
        target = self._declare(node, value.dtype)
        axes, indices = over(target.shape)
        self.steps.append(Kernel(target.name, (target,), axes, (), (Store(target.name, indices, value),)))

    def _converted(self, value: Any, axes: Sequence[Axis], common: DType, *, rounded: bool) -> Expression:
        """An operand in the dtype of the computation; `rounded` to its own dtype and to the common one first."""
        operand = self._operand(value, axes)
        if rounded and isinstance(value, Node):
            operand = cast(operand, program_dtype(value_of(value).dtype))
        return cast(cast(operand, common) if rounded else operand, common.computed)

    def _operand(self, value: Any, axes: Sequence[Axis]) -> Expression:
        if isinstance(value, Integer) and value.constant is None:
            return self._number(value)
        if isinstance(value, Real):
            return apply(
                value.function, *(cast(self._operand(member, axes), DType.FLOAT64) for member in value.operands)
            )
        if not isinstance(value, Node):
            return literal(value)
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
        rule = VIEWS.get(packet_of(node))
        if rule is None or value_of(arguments["self"]).dtype is not value_of(node).dtype:
            return False
        source = self.buffers[arguments["self"]]
        indices = rule(source.shape, self._shape(node), arguments)
        axes = view_axes(len(self._shape(node)))
        if indices is None or any(linear_coefficients(index, axes) is None for index in indices):
            return False
        self._see(node, source, indices)
        return True

    def _see(self, node: Node, source: Buffer, indices: Indices) -> None:
        """Declare a view of the buffer in memory, not of another view; an identity view is its base."""
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
        source, (_, indices) = self.buffers[arguments["self"]], over(self._shape(node))
        parts = (Load(source.name, (*indices, part), source.dtype) for part in (ZERO, ONE))
        self._compute(node, apply("complex", *parts))

    def _split(self, node: Node, arguments: Mapping[str, Any]) -> None:
        source = self.buffers[arguments["self"]]
        dimension = arguments.get("dim", 0) % len(source.shape)
        for piece in sorted(node.users, key=position_of):
            offset = sum((self._size(one.shape[dimension]) for one in node.meta["val"][: position_of(piece)]), ZERO)
            self._see(piece, source, split_indices(source.shape, self._shape(piece), dimension, offset))

    def _cat(self, node: Node, arguments: Mapping[str, Any]) -> None:
        """One kernel for each piece, all storing into one buffer."""
        target = self._declare(node)
        dimension = arguments.get("dim", 0) % len(target.shape)
        pieces = [self.buffers[piece] for piece in arguments["tensors"]]
        pieces = [piece for piece in pieces if len(piece.shape) == len(target.shape)]
        pieces = [piece for piece in pieces if piece.shape[dimension] != ZERO] or pieces[:1]
        self.steps += joined(target, map(piece_of, pieces), dimension)

    def _reduction(self, node: Node, arguments: Mapping[str, Any]) -> bool:
        """A kernel with reduced rows; a reducing store if other dimensions than the last are reduced."""
        row = REDUCTIONS.get(packet_of(node))
        value = node.meta["val"]
        if row is None or isinstance(value, (tuple, list)) or value_of(arguments["self"]).is_complex():
            return False  # values and positions; parts that are reduced apart
        source = self._stored(arguments["self"]) if row.truth else self.buffers[arguments["self"]]
        reduced = reduced_dimensions(row, arguments, len(source.shape))
        kept = [size for dimension, size in enumerate(source.shape) if dimension not in reduced]
        keep = bool(arguments.get("keepdim", False))
        seen = self._seen_without(node, tuple(kept)) if keep else None
        target = self._declare(seen or node, program_dtype(value.dtype).computed)
        order = self.orders_by_shape.get(source.shape, ())
        self.steps.append(reduce_kernel(source, target, row, reduced, keep=keep and seen is None, order=order))
        return True

    def _seen_without(self, node: Node, shape: tuple[Integer, ...]) -> Node | None:
        """The view that drops the dimensions of one element, if it is the node's only user."""
        user = next(iter(node.users)) if len(node.users) == 1 and node not in self.results else None
        if user is None or user.op != "call_function" or user.target is operator.getitem:
            return None
        drops = packet_of(user) in (*RESHAPES, aten.squeeze) and user.target is not aten.view.dtype
        return user if drops and self._shape(user) == shape else None

    def _call(self, node: Node, func: OpOverload) -> None:
        if numbers := [source for source in node.all_input_nodes if NUMBER in source.meta]:
            raise NumberNeeded(f"{func.name()} needs the value of a number that changes", names=parameters_of(numbers))
        if order := self.graph.draws.get(node):
            target = self._declare(node)
            self.aliases.add(target.name)
            self.steps += drawn_in_order(node, order, target, self.names.fresh(f"{target.name}_memory"))
            return
        targets = self._results(func, node)
        if any(returned.alias_info is not None for returned in func._schema.returns):
            self.aliases.update(target.name for target in targets)
        given = {source: self._in_memory(source) for source in node.all_input_nodes}
        may_raise = self.effects and node in self.graph.raising
        self.steps.append(call_of(func, named_arguments(func, node), given, targets, may_raise=may_raise))

    def _results(self, func: OpOverload, node: Node) -> tuple[Buffer, ...]:
        """Declare the results of a library operation, in order, also unused ones.

        Raises:
            NoKernel: If they come as a list, which a Program does not have.
        """
        values = node.meta["val"]
        if not isinstance(values, (tuple, list)):
            return (self._declare(node),)
        if len(values) != len(func._schema.returns):
            raise NoKernel(f"{func.name()} gives a list of tensors", hint="keep it outside of the operator")
        taken = {position_of(member): self._declare(member) for member in node.users}
        return tuple(taken.get(position) or self._unused(node, value) for position, value in enumerate(values))

    def _unused(self, node: Node, value: torch.Tensor | None) -> Buffer:
        if value is None:
            return Buffer(self.names.fresh(f"no_{node.name}"), DType.INT64, ())
        name = self.names.fresh(f"unused_{node.name}")
        return Buffer(name, program_dtype(value.dtype), tuple(map(self._size, value.shape)))

    def _result(self, name: str, node: Node, taken: Sequence[str]) -> str:
        """An output is a buffer of its own: copy what is an input, a view, or returned already."""
        buffer = self.buffers[node] if name in self.unrounded else self._stored(node)
        own = {target.name for step in self.steps if isinstance(step, Kernel | Call) for target in step.targets}
        if buffer.name in own - self.aliases and buffer.name not in taken:
            return buffer.name
        return self._copy(name, buffer).name
