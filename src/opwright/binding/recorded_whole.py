"""The node of an operator that a compiler or an exporter sees as one operation, and its gradients as another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import Function
from torch.utils._pytree import tree_flatten

from opwright.binding.derived_node import GradientsOf, Step, gradients, keep


def call_whole(overload: Callable[..., Any], gradients_of: GradientsOf, args: Sequence[Any]) -> Any:
    """Call an operator at the dispatcher, below autograd, and record its gradients as an operator there too.

    Args:
        overload: The operator.
        gradients_of: The operators of its gradients.
        args: The arguments, in order.
    """
    if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        step = _Whole(overload, gradients_of)
        return step.rebuilt(_record(step, *args))
    with torch._C._AutoDispatchBelowAutograd():
        return overload(*args)


class _Whole(Step):
    def __init__(self, overload: Callable[..., Any], gradients_of: GradientsOf) -> None:
        super().__init__(gradients_of)
        self.overload = overload


class _Node(Function):
    @staticmethod
    def forward(ctx: Any, step: _Whole, *args: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            step.leaves, step.layout = tree_flatten(step.overload(*args))
        outputs = tuple(step.leaves)
        keep(ctx, step, args, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        return gradients(ctx, incoming, lambda operator, *args: (operator.overload or operator)(*args))


_record: Callable[..., Any] = _Node.apply
