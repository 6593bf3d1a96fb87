"""The autograd node of an operator in compilers and exporters, which see one operation, and one for its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import Function

from opwright.binding.autograd.derived_node import GradientsOf, Made, gradients, keep
from opwright.binding.returned import Returned


def call_whole(overload: Callable[..., Any], gradients_of: GradientsOf, args: Sequence[Any]) -> Any:
    """Call an operator at the dispatcher, below autograd, with another operator there for its gradients.

    Args:
        overload: The operator.
        gradients_of: The operators of its gradients.
        args: The arguments, in order.
    """
    if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        call = _Call(overload, gradients_of)
        outputs = _record(call, *args)
        return call.returned.rebuilt(outputs)
    with torch._C._AutoDispatchBelowAutograd():
        return overload(*args)


class _Call:
    def __init__(self, overload: Callable[..., Any], gradients_of: GradientsOf) -> None:
        self.overload = overload
        self.gradients_of = gradients_of
        self.returned: Returned


class _Node(Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, *args: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            call.returned = returned = Returned(call.overload(*args))
        return keep(ctx, Made(call.gradients_of, returned.places, args, tuple(returned.tensors)))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        return gradients(ctx, cotangents, lambda operator, *args: (operator.overload or operator)(*args))


_record: Callable[..., Any] = _Node.apply
