"""Count the operations of a Graph: those of the reference, and those that its derivative adds."""

from __future__ import annotations

from collections.abc import Iterable

from torch._ops import OpOverload
from torch.fx import Node

from opwright.explain.layout import counted, labelled
from opwright.tracing.graph import Graph, ancestors


def operation_lines(graph: Graph) -> list[str]:
    """Count the ATen operations that the outputs need, and the rest, in order of first use."""
    forward = set(ancestors(graph.outputs))
    lines = _passage("forward", (node for node in graph.fx.nodes if node in forward))
    return lines + _passage("backward", (node for node in graph.fx.nodes if node not in forward))


def _passage(name: str, nodes: Iterable[Node]) -> list[str]:
    operations = [node.target.overloadpacket.__name__ for node in nodes if isinstance(node.target, OpOverload)]
    if not operations:
        return []
    number = "one operation" if len(operations) == 1 else f"{len(operations)} operations"
    return labelled(name, f"{number}: {counted(operations)}")
