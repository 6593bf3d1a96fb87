"""Which gradients need which matrix products and convolutions of a backward pass.

Everything else in it is almost element-wise: leaving it out saves less than the call of another kernel costs.
"""

from __future__ import annotations

import operator

import torch
from torch._ops import OpOverload
from torch.fx import Node

from opwright.derivation.joint import Joint
from opwright.derivation.saving.partition import Partition
from opwright.tracing.graph import ancestors

aten = torch.ops.aten
_PRODUCTS = {aten.mm, aten.bmm, aten.addmm, aten.baddbmm, aten.mv, aten.addmv, aten.convolution}
_WEIGHT = 1  # results 0 and 1 of a convolution's backward pass, for input and weight, take a convolution each


def gradients_by_product(joint: Joint, kept: Partition) -> tuple[tuple[int, ...], ...]:
    """The positions of the arguments whose gradients need a product, for each product that not all gradients need."""
    gradients = {position: node for position, node in enumerate(joint.gradients) if node is not None}
    stop = {*kept.inputs, *kept.outputs, *kept.intermediates}
    needing: dict[Node, list[int]] = {}
    for position, gradient in gradients.items():
        others = stop - {gradient}
        for product in (n for n in ancestors([gradient], others) if n not in others and _is_product(n)):
            needing.setdefault(product, []).append(position)
    every = tuple(gradients)
    return tuple(sorted({tuple(positions) for positions in needing.values()} - {every}))


def _is_product(node: Node) -> bool:
    if node.target is operator.getitem:
        several, place = node.args
        is_of_convolution = isinstance(several, Node) and _packet(several) is aten.convolution_backward
        return is_of_convolution and isinstance(place, int) and place <= _WEIGHT
    return _packet(node) in _PRODUCTS


def _packet(node: Node) -> object:
    return node.target.overloadpacket if isinstance(node.target, OpOverload) else None
