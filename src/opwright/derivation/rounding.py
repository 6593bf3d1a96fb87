"""Where values of half types are rounded although kernels go on with them in registers.

What is in memory is rounded, and some of it meets what kernels compute again: `exp(z - y)` with a saved z and
`y = logsumexp(z)`, or with `y = logcumsumexp(z)`, which a library operation computes of z in memory. One rounding in
one of both is an error that eager, which computes y of the rounded z, has not. So z is rounded where it is computed.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch.fx import Node

from opwright.derivation.saving.costs import is_cheap, is_product, is_reduction, is_rounded_at_the_end, is_view
from opwright.tracing.graph import Graph


def rounded_in_registers(graph: Graph, saved: Iterable[Node] = ()) -> frozenset[Node]:
    """The values of half types that are rounded where they are computed.

    Args:
        graph: The traced graph.
        saved: Values that the forward pass saves rounded, and goes on with.
    """
    read = [source for node in graph.fx.nodes if _is_of_the_library(node) for source in node.all_input_nodes]
    return frozenset(filter(is_rounded_at_the_end, map(_base, (*saved, *read))))


def made_of_rounded(graph: Graph, saved: Iterable[Node]) -> set[Node]:
    """What is computed of values that are rounded because they are saved, which another program may not round.

    Args:
        graph: The traced graph.
        saved: As above.
    """
    rounded, made = rounded_in_registers(graph, saved) - rounded_in_registers(graph), set[Node]()
    for node in graph.fx.nodes if rounded else ():
        if any(source in rounded or source in made for source in node.all_input_nodes):
            made.add(node)
    return made


def _is_of_the_library(node: Node) -> bool:
    """Whether a library operation, other than products and convolutions, computes a value of others in memory."""
    return node.op == "call_function" and not (is_cheap(node) or is_reduction(node) or is_product(node))


def _base(node: Node) -> Node:
    while is_view(node):
        node = node.all_input_nodes[0]
    return node
