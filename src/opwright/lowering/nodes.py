"""What lowering asks of the nodes of a Graph and of their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from opwright.ir.call_traits import has_effect
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Literal
from opwright.ir.expressions.integer import Integer, symbol
from opwright.ir.program import Axis
from opwright.lowering.pointwise.complex import COMPLEX
from opwright.lowering.pointwise.row import Pointwise
from opwright.lowering.pointwise.table import POINTWISE
from opwright.tracing.graph import Graph, ancestors, value_of
from opwright.tracing.scalars.numbers import NUMBER
from opwright.tracing.scalars.reals import Real

aten = torch.ops.aten

# The user's own conversions, which round to a half type. Torch's decompositions convert with `aten.to`, to go on in
# float32.
FILLS = {aten.fill, aten.full, aten.full_like, aten.scalar_tensor}
CONVERSIONS = {aten._to_copy, aten.copy} | FILLS
COPIES = {aten.clone, aten.to, aten._to_copy, aten.positive, aten.copy}
RESHAPES = {aten.view, aten._unsafe_view, aten.reshape}


def packet_of(node: Node) -> Any:
    """The operation that a node calls, whatever the overload."""
    assert isinstance(node.target, OpOverload)
    return node.target.overloadpacket


def row_of(node: Node, arguments: Mapping[str, Any]) -> Pointwise | None:
    """The row of the table of element-wise operations, or of that of complex ones."""
    values = [v.meta["val"] if isinstance(v, Node) else v for v in (node, *arguments.values())]
    has_complex = any(isinstance(v, complex) or (isinstance(v, torch.Tensor) and v.is_complex()) for v in values)
    return (COMPLEX if has_complex else POINTWISE).get(packet_of(node))


def over(shape: Sequence[Integer]) -> tuple[tuple[Axis, ...], tuple[Integer, ...]]:
    """The axes of a kernel that computes a whole buffer, and where it stores."""
    axes = tuple(Axis(f"i{dimension}", size) for dimension, size in enumerate(shape))
    return axes, tuple(symbol(axis.name) for axis in axes)


def literal(value: Any) -> Expression:
    """A Python number as torch types it."""
    if isinstance(value, bool):
        return Literal(value, DType.BOOL)
    if isinstance(value, complex):
        return Literal(value, DType.COMPLEX128)
    if isinstance(value, Integer):
        value = value.constant
    return Literal(value, DType.INT64 if isinstance(value, int) else DType.FLOAT64)


def promotable(value: Any) -> Any:
    """A tensor, or a number of the same type, for torch's promotion rules."""
    if isinstance(value, Integer):
        return 1
    if isinstance(value, Real):
        return 1.0
    return value.meta.get(NUMBER, value_of(value)) if isinstance(value, Node) else value


def position_of(member: Node) -> int:
    """Which of several results a node takes."""
    position = member.args[1]
    assert isinstance(position, int)
    return position


def parameters_of(nodes: Sequence[Node]) -> tuple[str, ...]:
    """The names of the inputs that nodes are computed from."""
    return tuple(sorted(str(node.target) for node in ancestors(nodes) if node.op == "placeholder"))


def effects_of(graph: Graph, inputs: Mapping[Node, str]) -> list[Node]:
    """Operations with side effects, and those that may raise, that can be computed from the inputs."""
    reached: set[Node] = set(inputs)
    for node in graph.fx.nodes:
        if node.op != "placeholder" and all(source in reached for source in node.all_input_nodes):
            reached.add(node)
    raising = set(graph.raising)
    return [
        node
        for node in graph.fx.nodes
        if node in reached
        and isinstance(node.target, OpOverload)
        and (node in raising or has_effect(node.target._schema.name))
    ]


def needed_nodes(graph: Graph, inputs: Mapping[Node, str], outputs: Sequence[Node]) -> list[Node]:
    """The nodes between inputs and outputs, in order of execution; dead code stays out."""
    wanted = set(ancestors(outputs, stop=inputs)) - inputs.keys()
    return [node for node in graph.fx.nodes if node in wanted]
