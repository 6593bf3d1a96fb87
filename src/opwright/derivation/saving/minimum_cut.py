"""The least costly nodes that cut every path from the sources of a network to its sinks.

Dinic's algorithm (1970) on the network in which each node is an edge from its `in` end to its `out` end, as wide as
the node costs. With whole numbers, so that nothing is rounded. A graph library would be imported for 0.2 s.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping
from itertools import pairwise
from typing import TypeVar

from opwright.errors import InternalError

Node = TypeVar("Node", bound=Hashable)
End = Hashable
Network = dict[End, dict[End, int]]  # what can still flow from one end to another

_SOURCE, _SINK = "source", "sink"


def minimum_cut(
    costs: Mapping[Node, int | None], edges: Iterable[tuple[Node, Node]], sources: Iterable[Node], sinks: Iterable[Node]
) -> list[Node]:
    """Find the nodes to cut; of several cuts that cost the same, the one that is nearest to the sinks.

    Args:
        costs: What it costs to cut each node; None if it must not be cut. Each path must have one that may be.
        edges: Pairs of nodes.
        sources: Where paths begin.
        sinks: Where they end.

    Raises:
        InternalError: If a path has no node that may be cut.
    """
    endless = 1 + sum(cost for cost in costs.values() if cost is not None)
    left: Network = defaultdict(dict)

    def connect(begin: End, end: End, width: int) -> None:
        left[begin][end] = left[begin].get(end, 0) + width
        left[end].setdefault(begin, 0)

    for node, cost in costs.items():
        connect((node, "in"), (node, "out"), endless if cost is None else cost)
    for before, after in edges:
        connect((before, "out"), (after, "in"), endless)
    for node in sources:
        connect(_SOURCE, (node, "in"), endless)
    for node in sinks:
        connect((node, "out"), _SINK, endless)
    while _SOURCE in (levels := _levels(left)):
        _fill(left, levels)
    if sum(left[end][_SOURCE] for end in left[_SOURCE]) >= endless:
        raise InternalError("a path has no value that may be saved")
    return [node for node in costs if (node, "in") not in levels and (node, "out") in levels]


def _levels(left: Network) -> dict[End, int]:
    """How many edges lie between an end and the sink, for those from which something can still flow there."""
    levels: dict[End, int] = {_SINK: 0}
    waiting: deque[End] = deque(levels)
    while waiting:
        end = waiting.popleft()
        for before in left[end]:
            if before not in levels and left[before][end]:
                levels[before] = levels[end] + 1
                waiting.append(before)
    return levels


def _fill(left: Network, levels: Mapping[End, int]) -> None:
    """Let flow what can along shortest paths."""
    untried = {end: list(left[end]) for end in levels}
    path: list[End] = [_SOURCE]
    while path:
        end = path[-1]
        if end == _SINK:
            steps = list(pairwise(path))
            flow = min(left[begin][after] for begin, after in steps)
            for begin, after in steps:
                left[begin][after] -= flow
                left[after][begin] += flow
            full = next(place for place, (begin, after) in enumerate(steps) if not left[begin][after])
            del path[full + 1 :]
            continue
        ways = untried[end]
        while ways and not (levels.get(ways[-1]) == levels[end] - 1 and left[end][ways[-1]]):
            ways.pop()
        if ways:
            path.append(ways[-1])
            continue
        path.pop()
        if path:
            untried[path[-1]].pop()
