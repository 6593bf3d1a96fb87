"""Digests of what nodes compute: nodes with the same digest, in any graphs, have the same value."""

from __future__ import annotations

import hashlib
from typing import Any

from torch._ops import OpOverload
from torch.fx import Node

from opwright.ir.expressions.exact import exact
from opwright.tracing.recording.draws import is_draw

STANDS_FOR = "opwright_stands_for"  # on an input with the value of a node: that node


class Digests:
    """Digests of the nodes of one graph, starting from the names of its inputs; each is made once."""

    def __init__(self) -> None:
        self._known: dict[Node, str] = {}

    def of(self, node: Node) -> str:
        """The digest of a node; empty if the operation is not repeatable."""
        pending = [node]
        while pending:
            current = pending[-1]
            missing = [source for source in current.all_input_nodes if source not in self._known]
            if missing:
                pending += missing
                continue
            self._known[pending.pop()] = self._digest(current)
        return self._known[node]

    def _digest(self, node: Node) -> str:
        if STANDS_FOR in node.meta:
            return self.of(node.meta[STANDS_FOR])
        if node.op == "placeholder":
            return f"%{node.target}"
        if not _is_repeatable(node) or not all(self._known[source] for source in node.all_input_nodes):
            return ""
        spelled = repr((str(node.target), self._spelled(node.args), self._spelled(node.kwargs)))
        return hashlib.sha256(spelled.encode()).hexdigest()[:16]

    def _spelled(self, value: Any) -> Any:
        if isinstance(value, Node):
            return ("node", self._known[value])
        if isinstance(value, (tuple, list)):
            return [self._spelled(member) for member in value]
        if isinstance(value, dict):
            return [(key, self._spelled(member)) for key, member in sorted(value.items())]
        return (type(value).__name__, repr(value), str(value), exact(value) if isinstance(value, float) else ())


def _is_repeatable(node: Node) -> bool:
    """Whether an operation is deterministic; a user's own step may do anything."""
    if not isinstance(node.target, OpOverload):
        return True  # a member of a tuple
    return node.target.namespace in ("aten", "prims") and not is_draw(node.target, node.args, node.kwargs)
