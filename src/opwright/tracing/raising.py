"""The operations of a reference whose errors are the user's, also where nobody reads their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch._ops import OpOverload
from torch.fx import Node

from opwright.ir.call_traits import may_raise, refuses_zeros
from opwright.tracing.decompositions.demands import is_asked
from opwright.tracing.graph import ancestors

aten = torch.ops.aten

# These take any dtype, and a trace has seen the shapes.
_ONLY_MOVE = frozenset(
    {aten.flip.default, aten.repeat.default, aten.roll.default, aten.tril.default, aten.triu.default}
)


def raising(nodes: Iterable[Node], outputs: Sequence[Node]) -> tuple[Node, ...]:
    """Those that may raise because of values; and those that nobody reads, unless a trace has raised what they raise.

    A trace raises what is wrong with shapes, and what is wrong with dtypes where torch was asked (`demands.py`). Other
    operations check more when they run.
    """
    read = set(ancestors(outputs))
    return tuple(node for node in nodes if _is_one(may_raise, node) or (node not in read and _checks_more(node)))


def refusing_zeros(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Those that may refuse zeros in place of what they took, such as a check."""
    return tuple(node for node in nodes if _is_one(refuses_zeros, node))


def _is_one(kind: Callable[..., bool], node: Node) -> bool:
    if not isinstance(node.target, OpOverload):
        return False
    value = node.meta["val"]
    integers = isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())
    return kind(node.target._schema.name, integers=integers)


def _checks_more(node: Node) -> bool:
    target = node.target
    if not isinstance(target, OpOverload) or not node.all_input_nodes or target.namespace == "prims":
        return False
    return target is aten.as_strided.default or not (target.is_view or is_asked(target) or target in _ONLY_MOVE)
