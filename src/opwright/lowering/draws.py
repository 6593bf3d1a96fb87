"""Random numbers that eager draws into memory in another order than row by row, as `dropout(x.transpose(0, 1))` does.

Operations draw along memory, but some draw otherwise into contiguous memory, and which ones depends on the processor.
So a Program does what eager does: it makes memory in that order, and draws into it.

    drawn = bernoulli(x, p)    →    memory = empty_permuted(sizes, order);  drawn = bernoulli_(memory, p)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from opwright.ir.program import Buffer, Call
from opwright.lowering.calls import call_of, named_arguments
from opwright.tracing.graph import value_of
from opwright.tracing.interface.orders import Order
from opwright.tracing.recording.draws import in_another_order

aten = torch.ops.aten

_IN_PLACE: dict[OpOverload, tuple[OpOverload, tuple[str, ...]]] = {
    aten.bernoulli.p: (aten.bernoulli_.float, ("p", "generator")),
    aten.exponential.default: (aten.exponential_.default, ("lambd", "generator")),
    aten.normal_functional.default: (aten.normal_.default, ("mean", "std", "generator")),
    aten.uniform.default: (aten.uniform_.default, ("from", "to", "generator")),
    aten.rand_like.default: (aten.uniform_.default, ()),  # from 0 to 1, by default
    aten.randn_like.default: (aten.normal_.default, ()),
}


def drawn_in_order(node: Node, order: Order, target: Buffer, memory: str) -> tuple[Call, ...]:
    """The steps that draw random numbers into memory that lies in an order.

    Args:
        node: What eager draws so.
        order: The order of its dimensions in memory, outermost first.
        target: The buffer of the numbers.
        memory: The name of the buffer that is drawn into.

    Raises:
        NoKernel: If no operation draws such numbers into given memory.
    """
    func = node.target
    assert isinstance(func, OpOverload)
    if func not in _IN_PLACE:
        raise in_another_order(func.name())
    in_place, names = _IN_PLACE[func]
    given = named_arguments(func, node)
    empty = replace(target, name=memory)
    sizes = {"size": list(empty.shape), "physical_layout": list(order), "dtype": value_of(node).dtype}
    drawn = {"self": empty, **{name: given[name] for name in names if name in given}}
    return _call(aten.empty_permuted.default, sizes, empty), _call(in_place, drawn, target)


def _call(func: OpOverload, given: Mapping[str, Any], target: Buffer) -> Call:
    return call_of(func, given, {}, (target,))
