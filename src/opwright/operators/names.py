"""What the inputs and outputs of Programs are called."""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import Node

from opwright.ir.names.fresh import fresh
from opwright.tracing.graph import Graph, described


def saved_names(graph: Graph, nodes: Sequence[Node], stem: str) -> list[tuple[str, Node]]:
    """Names for saved values: `saved_mean` if a variable holds the value, else `saved_sum` by the operation."""
    named: dict[str, Node] = {}
    for node in nodes:
        named[fresh(f"{stem}_{described(graph, node)}", named)] = node
    return list(named.items())


def named_inputs(graph: Graph) -> list[tuple[str, Node]]:
    """The inputs, by the names of the arguments and cotangents."""
    return [(given.name, given.node) for given in graph.inputs]


def named_outputs(graph: Graph) -> list[tuple[str, Node]]:
    """The outputs, numbered if there are several."""
    count = len(graph.outputs)
    return [(f"output_{p}" if count > 1 else "output", node) for p, node in enumerate(graph.outputs)]
