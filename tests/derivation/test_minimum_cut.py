"""The minimum cut against that of networkx, on random graphs."""

from __future__ import annotations

import random

import networkx
import pytest

from opwright.derivation.saving.minimum_cut import minimum_cut
from opwright.errors import InternalError

Edges = list[tuple[int, int]]


def _random_graph(seed: int) -> tuple[dict[int, int | None], Edges, list[int], list[int]]:
    pick = random.Random(seed)
    count = pick.randrange(2, 14)
    costs = {node: pick.choice([None, 1, 1, 2, 3, 5, 8, 13]) for node in range(count)}
    edges = [(a, b) for b in range(count) for a in range(b) if pick.random() < 0.4]
    return (
        costs,
        edges,
        pick.sample(range(count), pick.randrange(1, 3)),
        pick.sample(range(count), pick.randrange(1, 3)),
    )


def _judge(costs: dict[int, int | None], edges: Edges, sources: list[int], sinks: list[int]) -> tuple[int, set[int]]:
    """The cost of the cut of networkx, and its nodes."""
    network = networkx.DiGraph()
    for node, cost in costs.items():
        network.add_edge((node, "in"), (node, "out"), **({} if cost is None else {"capacity": cost}))
    network.add_edges_from([((a, "out"), (b, "in")) for a, b in edges])
    network.add_edges_from([("source", (node, "in")) for node in sources])
    network.add_edges_from([((node, "out"), "sink") for node in sinks])
    cost, (before, _) = networkx.minimum_cut(network, "source", "sink")
    return cost, {node for node in costs if (node, "in") in before and (node, "out") not in before}


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_graphs(first: int) -> None:
    refused = 0
    for seed in range(first, first + 100):
        graph = _random_graph(seed)
        try:
            cost, nodes = _judge(*graph)
        except networkx.NetworkXUnbounded:
            refused += 1
            with pytest.raises(InternalError, match="no value that may be saved"):
                minimum_cut(*graph)
            continue
        cut = minimum_cut(*graph)
        assert (sum(graph[0][node] or 0 for node in cut), set(cut)) == (cost, nodes)
    assert 0 < refused < 60


def test_a_long_chain_needs_no_recursion() -> None:
    chain = range(3000)
    costs = {node: 2 + (node != 1700) for node in chain}
    assert minimum_cut(costs, [(a, a + 1) for a in chain[:-1]], [0], [2999]) == [1700]
