"""The autograd node of every operator: forward and backward kernels, and the differentiable backward behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import Function

from opwright.binding.variant import Variant


class Declined(Exception):
    """No variant at hand takes these arguments."""


class OperatorFunction(Function):
    """Runs the first variant that takes the arguments.

    `apply(variants, differentiable, *arguments)`, where `differentiable` is called as
    `differentiable(arguments, incoming, variant)` for the backward pass under `create_graph=True`.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, variants: Sequence[Variant], differentiable: Callable[..., Any], *arguments: Any
    ) -> Any:
        variant, made = run_forward(variants, arguments)
        plan = variant.plan
        ctx.variant, ctx.differentiable = variant, differentiable
        ctx.set_materialize_grads(False)
        outputs = made[: plan.outputs]
        ctx.save_for_backward(
            *[arguments[position] for position in plan.saved.contributing],
            *made[plan.outputs :],
        )
        ctx.arguments = [
            _shape_of(argument) if isinstance(argument, torch.Tensor) else argument for argument in arguments
        ]
        ctx.shapes = [_shape_of(output) for output in outputs]
        if len(plan.tangents) != plan.outputs:
            flat = [output for position, output in enumerate(outputs) if position not in plan.tangents]
            ctx.mark_non_differentiable(*flat)
        return outputs[0] if plan.bare else outputs

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        variant: Variant = ctx.variant
        plan = variant.plan
        gradients: list[torch.Tensor | None] = [None] * (2 + len(ctx.arguments))
        if all(incoming[position] is None for position in plan.tangents):
            return tuple(gradients)
        tangents = [
            _zeros(*ctx.shapes[position]) if incoming[position] is None else incoming[position]
            for position in plan.tangents
        ]
        saved = ctx.saved_tensors
        if torch.is_grad_enabled():
            found = _differentiable_backward(ctx, saved, tangents, variant)
        else:
            found = _backward(ctx, saved, tangents, variant)
        for position, gradient in zip(plan.gradients, found, strict=True):
            gradients[2 + position] = gradient
        return tuple(gradients)


def run_forward(variants: Sequence[Variant], arguments: Sequence[Any]) -> tuple[Variant, Sequence[torch.Tensor]]:
    """Run the first variant that takes the arguments; its results are outputs, then intermediates.

    Raises:
        Declined: If none does.
    """
    for variant in variants:
        tensors = variant.plan.tensors
        if len(tensors) == len(arguments):
            made = variant.forward(*arguments)
        else:
            made = variant.forward(*[arguments[position] for position in tensors])
        if variant.forward_single:
            made = (made,)
        if made[0] is not None:
            return variant, made
    raise Declined


def _backward(ctx: Any, saved: Sequence[torch.Tensor], tangents: Sequence[Any], variant: Variant) -> Sequence[Any]:
    plan = variant.plan
    contributing = plan.saved.contributing
    tensors = [saved[contributing.index(position)] for position in plan.saved.arguments]
    sizes = [ctx.arguments[argument][0][dimension] for argument, dimension in plan.saved.sizes]
    assert variant.backward is not None
    found = variant.backward(*tensors, *saved[len(contributing) :], *tangents, *sizes)
    if variant.backward_single:
        found = (found,)
    if found[0] is None:  # declined: the tensors are no longer what the forward pass saw, or torch refused an allocation
        return _differentiable_backward(ctx, saved, tangents, variant)
    return found  # type: ignore[no-any-return]


def _differentiable_backward(
    ctx: Any, saved: Sequence[torch.Tensor], tangents: Sequence[Any], variant: Variant
) -> Sequence[Any]:
    contributing = variant.plan.saved.contributing
    arguments = [
        saved[contributing.index(position)]
        if position in contributing
        else (_zeros(*argument) if position in variant.plan.tensors else argument)
        for position, argument in enumerate(ctx.arguments)
    ]
    return ctx.differentiable(arguments, tangents, variant)  # type: ignore[no-any-return]


def _shape_of(tensor: torch.Tensor) -> tuple[torch.Size, torch.dtype]:
    return tensor.shape, tensor.dtype


def _zeros(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    """Zeros that take one element of memory."""
    return torch.zeros((), dtype=dtype).expand(shape)


# `Function.apply` without its questions about function transforms, which the caller has asked already.
apply = super(Function, OperatorFunction).apply
