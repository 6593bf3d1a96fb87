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
from opwright.lowering.reductions import REDUCTIONS
from opwright.lowering.views import VIEWS
from opwright.tracing.graph import value_of
from opwright.tracing.recording.draws import is_draw

aten = torch.ops.aten
_SPLITS = {aten.split, aten.split_with_sizes}
_CHEAP = {*POINTWISE, *COMPLEX, *VIEWS, *_SPLITS, aten.view_as_real, aten.view_as_complex}


def is_cheap(node: Node) -> bool:
    """Whether recomputing a value inside a kernel costs almost nothing, such as the sum of rows of one element."""
    if node.op == "placeholder" or _is(node, lambda packet: packet in _CHEAP or packet is torch.ops.prims.iota):
        return True
    return is_reduction(node) and _dimensions(node) == _dimensions(node.all_input_nodes[0])


def is_reduction(node: Node) -> bool:
    """Whether a kernel reduces a tensor to a value."""
    value = node.meta["val"]
    return _packet(node) in REDUCTIONS and isinstance(value, torch.Tensor) and not value.is_complex()


def is_product(node: Node) -> bool:
    """Whether a library operation sums products: of matrices, or a convolution."""
    from torch.utils.flop_counter import flop_registry

    return _packet(node) in flop_registry


def is_rounded_at_the_end(node: Node) -> bool:
    """Whether kernels compute a value in float32 that torch has in a half type."""
    value = node.meta["val"]
    is_half = isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
    return is_half and not is_view(node) and (is_cheap(node) or is_reduction(node))


def values_of_rows(joint: Joint) -> set[Node]:
    """What rows of two or more elements reduce to, and what is computed from such values element by element."""
    found: set[Node] = set()
    for node in joint.graph.fx.nodes:
        if is_reduction(node):
            is_of_rows = 2 * count(joint, node) <= count(joint, node.all_input_nodes[0])
        else:
            before = found.intersection(node.all_input_nodes) if is_cheap(node) else ()
            is_of_rows = any(count(joint, source) == count(joint, node) for source in before)
        if is_of_rows:
            found.add(node)
    return found


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


def _dimensions(node: Node) -> int:
    """How many dimensions of a tensor have more than one element."""
    return sum(not isinstance(size, int) or size > 1 for size in value_of(node).shape)


def _shape(joint: Joint, node: Node) -> list[int]:
    return [evaluate(size, joint.graph.sizes.hints) for size in joint.graph.sizes.shape(value_of(node))]


def _is(node: Node, kind: Callable[[Any], bool]) -> bool:
    if node.target is operator.getitem:
        return isinstance(node.args[0], Node) and _is(node.args[0], kind)
    return kind(_packet(node))


def _packet(node: Node) -> Any:
    return node.target.overloadpacket if isinstance(node.target, OpOverload) else None
