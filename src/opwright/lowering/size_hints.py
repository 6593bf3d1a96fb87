"""The sizes of the trace, by the symbols of a Program."""

from __future__ import annotations

from collections.abc import Iterable

from torch.fx import Node

from opwright.ir.expressions.integer import evaluate, symbols_of
from opwright.ir.program import size_symbol
from opwright.tracing.graph import Graph, value_of


def size_hints(graph: Graph, inputs: Iterable[tuple[str, Node]]) -> dict[str, int]:
    """A number for each size symbol of the inputs and of the trace."""
    met = dict(graph.sizes.hints)
    for name, node in inputs:
        for dimension, size in enumerate(graph.sizes.shape(value_of(node))):
            if symbols_of(size) <= set(graph.sizes.hints):
                met[str(size_symbol(name, dimension))] = evaluate(size, graph.sizes.hints)
    return met
