"""The node of an operator that a compiler or an exporter sees as one operation, and its gradients as another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import Function
from torch.utils._pytree import tree_leaves

from opwright.binding.autograd import zeros

GradientsOf = Callable[[tuple[int, ...], tuple[int, ...], tuple[int, ...], int], Any]


def call_whole(overload: Callable[..., Any], gradients_of: GradientsOf, args: Sequence[Any]) -> Any:
    """Call an operator at the dispatcher, below autograd, and record its gradients as an operator there too.

    Args:
        overload: The operator.
        gradients_of: The operators of its gradients, as `Family.backward` gives them.
        args: The arguments, in order.
    """
    if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        made = _record(overload, gradients_of, *args)
        return made[0] if len(made) == 1 else made
    with torch._C._AutoDispatchBelowAutograd():
        return overload(*args)


class _Whole(Function):
    @staticmethod
    def forward(ctx: Any, overload: Callable[..., Any], gradients_of: GradientsOf, *args: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            made = tuple(tree_leaves(overload(*args)))
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[tensor for tensor in made if not _is_differentiable(tensor)])
        ctx.gradients_of = gradients_of
        ctx.described = [(tuple(tensor.shape), tensor.dtype) for tensor in made]
        ctx.rest = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
        ctx.tensors = [isinstance(arg, torch.Tensor) for arg in args]
        ctx.flowing = tuple(place for place, tensor in enumerate(made) if _is_differentiable(tensor))
        ctx.save_for_backward(*[arg for arg in args if isinstance(arg, torch.Tensor)])
        return made

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        gradients: list[torch.Tensor | None] = [None] * len(ctx.needs_input_grad)
        wanted = tuple(position - 2 for position, needed in enumerate(ctx.needs_input_grad) if needed)
        if not wanted or all(incoming[place] is None for place in ctx.flowing):
            return tuple(gradients)
        tangents = [zeros(*ctx.described[p]) if incoming[p] is None else incoming[p] for p in ctx.flowing]
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if tensor else given for tensor, given in zip(ctx.tensors, ctx.rest, strict=True)]
        operator = ctx.gradients_of(wanted, ctx.flowing, ctx.flowing, len(ctx.described))
        found = (operator.overload or operator)(*args, *tangents)
        for position, gradient in zip(wanted, tree_leaves(found), strict=True):
            gradients[2 + position] = gradient
        return tuple(gradients)


_record: Callable[..., Any] = _Whole.apply


def _is_differentiable(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
