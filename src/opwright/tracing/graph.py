"""The Graph: the result of tracing, the input of derivation, lowering and the function rung."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch.fx import Graph as FxGraph
from torch.fx import Node

from opwright.ir.expressions.integer import Condition
from opwright.tracing.interface.orders import Order
from opwright.tracing.scalars.guards import NumberGuard
from opwright.tracing.scalars.sizes import SizeTable


@dataclass(frozen=True, slots=True)
class GraphInput:
    """An input tensor of a Graph."""

    name: str
    node: Node


@dataclass(frozen=True, slots=True)
class Graph:
    """A `torch.fx` graph of core ATen operations with symbolic sizes; every node's `meta["val"]` is its fake value.

    Attributes:
        fx: The nodes in order of execution.
        inputs: The placeholders with their names.
        outputs: The nodes that are returned.
        sizes: The meaning of the size symbols.
        guards: For which sizes the Graph is valid.
        names: Names of the reference's own variables, by node.
        described: Names of the variables of our decompositions.
        number_guards: For which values of varying numbers it is valid.
        hides_from_autograd: Whether the reference detaches a value or computes under no_grad.
        operations: The operations of PyTorch that the reference calls, in order, without views.
        raising: The operations of a reference that may raise although the trace did not; () if it was derived.
        draws: The operations that draw random numbers, in order, each with the order of the memory that it fills.
        needs_row_major: Whether it is valid only for contiguous inputs, as in the trace.
        needs_whole_memory: Whether it is valid only for inputs that fill their storage.
        asks_for_identity: Whether the reference asks whether two tensors are one, which its inputs are not.
        records_unasked: Whether results require gradients in a call that records none, if an argument does.
        copies: What `AS_TRACED` was told, in order: whether each tensor that it asked about is a copy of an argument.
    """

    fx: FxGraph
    inputs: tuple[GraphInput, ...]
    outputs: tuple[Node, ...]
    sizes: SizeTable
    guards: tuple[Condition, ...]
    names: dict[Node, str]
    described: dict[Node, str]
    hides_from_autograd: bool
    operations: tuple[str, ...]
    draws: Mapping[Node, Order]
    needs_row_major: bool
    needs_whole_memory: bool
    asks_for_identity: bool
    number_guards: tuple[NumberGuard, ...] = ()
    raising: tuple[Node, ...] = ()
    records_unasked: bool = False
    copies: tuple[bool, ...] = ()

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers."""
        return bool(self.draws)


def ancestors(nodes: Iterable[Node], stop: Container[Node] = frozenset()) -> list[Node]:
    """The nodes and all that they are computed from; what a node of `stop` is computed from is left out."""
    seen: dict[Node, None] = {}
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in seen:
            seen[node] = None
            pending.extend(node.all_input_nodes if node not in stop else ())
    return list(seen)


def described(graph: Graph, node: Node) -> str:
    """The name of the variable that holds a value, else that of the operation that makes it."""
    operation: str = getattr(getattr(node.target, "overloadpacket", None), "__name__", "value")
    return graph.names.get(node) or graph.described.get(node) or operation.strip("_")


def value_of(node: Node) -> torch.Tensor:
    """The fake tensor a node stands for."""
    value = node.meta["val"]
    assert isinstance(value, torch.Tensor)
    return value
