"""What it costs to save a value, in bytes, and to compute it again, in operations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node
from torch.fx.node import map_arg

from opwright.derivation.joint import Joint
from opwright.ir.expressions.integer import evaluate
from opwright.lowering.pointwise.complex import COMPLEX
from opwright.lowering.pointwise.table import POINTWISE
from opwright.lowering.views import VIEWS
from opwright.tracing.graph import value_of
from opwright.tracing.recording.draws import is_draw

aten = torch.ops.aten
_SPLITS = {aten.split, aten.split_with_sizes}
_CHEAP = {*POINTWISE, *COMPLEX, *VIEWS, *_SPLITS, aten.view_as_real, aten.view_as_complex}


def is_cheap(node: Node) -> bool:
    """Whether recomputing a value inside a kernel costs almost nothing."""
    return node.op == "placeholder" or _is(node, lambda packet: packet in _CHEAP or packet is torch.ops.prims.iota)


def is_view(node: Node) -> bool:
    """Whether a value lies in the memory of another."""
    return _is(node, lambda packet: packet in VIEWS or packet in _SPLITS)


def is_copy(node: Node) -> bool:
    """Whether a value consists of others, one behind the other."""
    return _is(node, lambda packet: packet is aten.cat)


def count(joint: Joint, node: Node) -> int:
    """The number of elements of a value in the traced call; zero if it is not a tensor."""
    return math.prod(_shape(joint, node)) if isinstance(node.meta["val"], torch.Tensor) else 0


def work(joint: Joint, node: Node) -> float:
    """The operations that compute a value from those before it; infinite for random numbers, which come only once.

    Products and convolutions are counted as torch does; all else as many as the elements that it reads and writes.
    """
    from torch.utils.flop_counter import flop_registry

    if node.op == "placeholder" or is_view(node):
        return 0
    if isinstance(node.target, OpOverload) and is_draw(node.target, node.args, node.kwargs):
        return math.inf
    formula = flop_registry.get(_packet(node))
    if formula is None:
        return float(sum(count(joint, each) for each in (node, *node.all_input_nodes)))

    def sample(each: Node) -> Any:
        value = each.meta["val"]
        return torch.empty(_shape(joint, each), device="meta") if isinstance(value, torch.Tensor) else value

    return float(formula(*map_arg(node.args, sample), **map_arg(node.kwargs, sample), out_val=sample(node)))


def _shape(joint: Joint, node: Node) -> list[int]:
    return [evaluate(size, joint.graph.sizes.hints) for size in joint.graph.sizes.shape(value_of(node))]


def _is(node: Node, kind: Callable[[Any], bool]) -> bool:
    if node.target is operator.getitem:
        return isinstance(node.args[0], Node) and _is(node.args[0], kind)
    return kind(_packet(node))


def _packet(node: Node) -> Any:
    return node.target.overloadpacket if isinstance(node.target, OpOverload) else None
