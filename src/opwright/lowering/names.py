"""Names for buffers: the reference's own variables first, then operation and operand."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import torch
from torch._ops import OpOverload
from torch.fx import Node

from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.names.fresh import fresh
from opwright.lowering.views import VIEWS
from opwright.tracing.graph import Graph


class Names:
    """Gives every node of a graph a name that no other node has."""

    def __init__(self, graph: Graph, inputs: Mapping[Node, str], outputs: Sequence[tuple[str, Node]]) -> None:
        spoken = {node: name for node, name in graph.names.items() if name.strip("_")}  # what is called _ has no name
        self._wished = graph.described | spoken | {node: name for name, node in outputs if node not in spoken}
        self._given: dict[Node, str] = dict(inputs)
        self._taken = set(inputs.values())

    def of(self, node: Node) -> str:
        """The name of a node."""
        if node not in self._given:
            self._given[node] = self.fresh(self._wished.get(node) or self._describe(node))
        return self._given[node]

    def fresh(self, wished: str) -> str:
        """The wanted name, with a number if it is taken; no value is called like a function."""
        name = fresh(wished, self._taken, FUNCTIONS)
        self._taken.add(name)
        return name

    def _describe(self, node: Node) -> str:
        """`tanh(cell)` becomes tanh_cell, and `sum(x * y)` sum_x_y; else the operation; a view says of what."""
        if node.target is operator.getitem:
            return self._describe(node.args[0]) if isinstance(node.args[0], Node) else node.name
        name = node.target._schema.name.split("::")[1].strip("_") if isinstance(node.target, OpOverload) else node.name
        operands = node.all_input_nodes
        if name == "sum" and operands[0] not in self._wished and operands[0].target is torch.ops.aten.mul.Tensor:
            operands = operands[0].all_input_nodes
        elif len(operands) > 1:
            return name
        operands = list(map(self._viewed, operands))
        if self._viewed(node) is not node and operands[0] not in self._wished and operands[0].op == "call_function":
            return f"{name}_{self._describe(operands[0])}"
        known = [self._wished[operand] for operand in operands if operand in self._wished]
        return "_".join([name, *known]) if len(known) == len(operands) else name

    def _viewed(self, node: Node) -> Node:
        """The value with a name that a node is a view of, if there is one; else the value that is no view."""
        while node not in self._wished and getattr(node.target, "overloadpacket", None) in VIEWS:
            (node,) = node.all_input_nodes[:1]
        return node
