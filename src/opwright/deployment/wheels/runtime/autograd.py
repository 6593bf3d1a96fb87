"""Nodes of autograd: a forward and a backward kernel, and, for compilers, an operation and that of its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch.autograd import Function

from opwright.binding.autograd.redraw import Draw, drawn_again
from opwright.binding.environment import are_plain, is_overheard, is_transformed
from opwright.deployment.wheels.runtime.gradients import gradients_by_reference
from opwright.deployment.wheels.runtime.variant import Variant


class Differentiated(Protocol):
    """An operator, as its nodes see it."""

    def run_reference(self, *arguments: Any) -> Any:
        """Run the function as written on arguments in order."""

    def call_whole(self, *arguments: Any) -> Any:
        """Run the operation at the dispatcher, below autograd."""

    def call_gradients(self, *arguments: Any) -> tuple[torch.Tensor, ...]:
        """Run that of its gradients on arguments and cotangents: one for each at `differentiable`."""

    @property
    def differentiable(self) -> tuple[int, ...]:
        """Positions of the arguments that have gradients."""

    def run(self, variant: Variant, arguments: Sequence[Any]) -> tuple[torch.Tensor, ...] | None:
        """Outputs, then intermediates; None if a variant does not take the arguments."""

    @property
    def tangents(self) -> tuple[int, ...]:
        """Positions of the outputs that have cotangents."""

    def flowing(self, wanted: Sequence[bool]) -> set[int]:
        """Positions of the outputs from which gradients flow to arguments of which some are wanted."""


class Declined(Exception):
    """No variant takes these arguments."""


class KernelNode(Function):
    """Runs the first variant that takes the arguments: `apply(operator, variants, *arguments)`."""

    @staticmethod
    def forward(ctx: Any, operator: Differentiated, variants: Sequence[Variant], *arguments: Any) -> Any:
        """Run the forward kernel and keep what the backward pass reads."""
        for variant in variants:
            draw = Draw.here() if variant.is_random else None
            made = operator.run(variant, arguments)
            if made is not None:
                break
        else:
            raise Declined
        ctx.operator, ctx.variant, ctx.draw = operator, variant, draw
        ctx.set_materialize_grads(False)
        ctx.described = [_describe(argument) for argument in arguments]
        saved = [arguments[p].data if p in variant.checked else arguments[p] for p in variant.contributing]
        ctx.save_for_backward(*saved, *[made[p] for p in variant.kept])
        flowing = variant.flowing(ctx.needs_input_grad[-len(arguments) :])
        ctx.mark_non_differentiable(*[made[p] for p in range(variant.outputs) if p not in flowing])
        return made[0] if variant.outputs == 1 else made[: variant.outputs]

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        """Run the backward kernel, or differentiate the reference.

        The reference serves where somebody differentiates or maps this pass, and where an output was not used: a zero
        for its cotangent, times an infinite derivative, would be NaN.
        """
        variant: Variant = ctx.variant
        saved = ctx.saved_tensors
        arguments = _restored(ctx.described, dict(zip(variant.contributing, saved, strict=False)))
        kept = saved[len(variant.contributing) :]
        flowing = [cotangents[position] for position in variant.tangents]
        used = [cotangent for cotangent in flowing if cotangent is not None]
        found: Sequence[torch.Tensor | None] | None = None
        if (
            len(used) == len(flowing)
            and not (torch.is_grad_enabled() or is_transformed() or is_overheard())
            and are_plain(used)
        ):
            shapes = [shape for _, shape, _ in ctx.described]
            found = variant.run_backward(arguments, kept, used, shapes)
        if found is None:
            with drawn_again(ctx.draw):
                found = gradients_by_reference(
                    ctx.operator.run_reference,
                    arguments,
                    variant.tangents,
                    flowing,
                    variant.gradients,
                    allow_unused=True,
                )
        return _placed(ctx, dict(zip(variant.gradients, found, strict=True)))


class WholeNode(Function):
    """What a compiler or an exporter records: `apply(operator, *arguments)`."""

    @staticmethod
    def forward(ctx: Any, operator: Differentiated, *arguments: Any) -> Any:
        """Run the operation at the dispatcher."""
        made = operator.call_whole(*arguments)
        outputs = (made,) if isinstance(made, torch.Tensor) else tuple(made)
        ctx.operator = operator
        ctx.set_materialize_grads(False)
        ctx.rest = [None if isinstance(argument, torch.Tensor) else argument for argument in arguments]
        ctx.places = [position for position, argument in enumerate(arguments) if isinstance(argument, torch.Tensor)]
        ctx.save_for_backward(*[arguments[position] for position in ctx.places])
        flowing = operator.flowing(ctx.needs_input_grad[-len(arguments) :])
        ctx.mark_non_differentiable(*[output for p, output in enumerate(outputs) if p not in flowing])
        return made

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        """Run the operation of the gradients; the reference, if an output was not used."""
        operator: Differentiated = ctx.operator
        arguments = list(ctx.rest)
        for position, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            arguments[position] = tensor
        flowing = [cotangents[position] for position in operator.tangents]
        found: Sequence[torch.Tensor | None]
        if any(cotangent is None for cotangent in flowing):
            found = gradients_by_reference(
                operator.run_reference,
                arguments,
                operator.tangents,
                flowing,
                operator.differentiable,
                allow_unused=True,
            )
        else:
            found = operator.call_gradients(*arguments, *flowing)
        gradients = dict(zip(operator.differentiable, found, strict=True))
        return (None, *[gradients.get(position) for position in range(len(arguments))])


def _describe(argument: Any) -> tuple[Any, tuple[int, ...], dict[str, Any] | None]:
    """A constant as it is, or of a tensor its shape, and what it is made with besides."""
    if isinstance(argument, torch.Tensor):
        return None, tuple(argument.shape), {"dtype": argument.dtype, "device": argument.device}
    return argument, (), None


def _restored(described: Sequence[Any], saved: dict[int, torch.Tensor]) -> list[Any]:
    """The arguments of the forward pass; one whose values no gradient depends on comes back as zeros."""
    return [
        saved[position]
        if position in saved
        else (constant if options is None else torch.zeros((), **options).expand(shape))
        for position, (constant, shape, options) in enumerate(described)
    ]


def _placed(ctx: Any, gradients: dict[int, torch.Tensor | None]) -> tuple[torch.Tensor | None, ...]:
    """The gradients where `apply` had its arguments: the operator, its variants, those of the call."""
    return (
        None,
        None,
        *[
            gradients.get(position) if ctx.needs_input_grad[2 + position] else None
            for position in range(len(ctx.described))
        ],
    )
