"""Backward passes of the outputs of one call, one after the other, without `retain_graph=True`.

In eager each output has its own nodes, and a pass frees what its nodes have saved. Here a call is one node, of which
torch frees everything after the first pass. What passes of other outputs need is kept until they have come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C._autograd import _get_current_graph_task_keep_graph
from torch.autograd import Function

from opwright.binding.variants.variant import Plan

Kept = Sequence[Any]


def saved_for(ctx: Any, plan: Plan, used: Sequence[int]) -> Kept:
    """What a call has saved, for the backward pass of some of its outputs.

    Args:
        ctx: The node of the call, a context of `torch.autograd.Function`.
        plan: That of all outputs.
        used: The positions of these outputs.

    Returns:
        Arguments, outputs and intermediates; None for outputs, if another pass came before.

    Raises:
        RuntimeError: If a pass has freed what this one needs; torch's own.
    """
    if not plan.freed:
        return ctx.saved_tensors  # type: ignore[no-any-return]
    passed: frozenset[int] = getattr(ctx, "passed", frozenset())
    places = {plan.tangents.index(position) for position in used}
    is_freed = any(not passed.isdisjoint(plan.freed[place]) for place in places)
    keeper: Any = None if is_freed else getattr(ctx, "keeper", None)
    saved: Kept = (ctx if keeper is None else keeper.grad_fn).saved_tensors
    if not _get_current_graph_task_keep_graph():
        ctx.passed = passed = passed | places
        others = set(range(len(plan.tangents))) - passed
        is_needed = any(passed.isdisjoint(plan.freed[place]) for place in others)
        ctx.keeper = _keeper_of(saved, plan) if is_needed else None
    return saved


def came_before(ctx: Any) -> bool:
    """Whether another pass has freed what torch saved."""
    return getattr(ctx, "passed", None) is not None


def _keeper_of(saved: Kept, plan: Plan) -> Any:
    """A tensor whose node keeps them, but for the outputs, which would keep the node of the call, and so this one.

    In PyTorch 2.11, but not 2.13, a node of a custom function frees what it has saved when its last result dies.
    """
    arguments = len(plan.saved.contributing)
    outputs = range(arguments, arguments + len(plan.saved.outputs))
    kept = [None if place in outputs else tensor for place, tensor in enumerate(saved)]
    with torch.enable_grad():
        return _hold(torch.empty(0, requires_grad=True), *kept)


class _Keeper(Function):
    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, *tensors: torch.Tensor | None) -> torch.Tensor:
        ctx.save_for_backward(*tensors)
        return anchor.clone()

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        raise NotImplementedError("nobody differentiates it")


_hold: Callable[..., torch.Tensor] = _Keeper.apply
