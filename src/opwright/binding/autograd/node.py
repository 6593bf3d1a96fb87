"""The autograd node of every operator: forward and backward kernels, and the differentiable backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.autograd import Function

from opwright.binding.autograd.after_changes import differentiated
from opwright.binding.autograd.kernels import Declined, run_backward, run_variant
from opwright.binding.autograd.passes import Kept, came_before, saved_for
from opwright.binding.autograd.redraw import Draw, drawn_again
from opwright.binding.environment import is_asked_for, is_transformed
from opwright.binding.variants.variant import Plan, Variant


class OperatorFunction(Function):
    """Runs the first variant that takes the arguments: `apply(variants, *arguments)`."""

    @staticmethod
    def forward(ctx: Any, variants: Chosen, *arguments: Any) -> Any:
        """Run the forward kernel and save what the backward pass reads."""
        for variant in variants:
            draw = Draw.here() if variant.is_random else None
            made = run_variant(variant, arguments)
            if made is not None:
                break
        else:
            raise Declined
        variants.made = made
        if draw is not None:
            ctx.draw = draw
        plan = variant.plan
        ctx.variant = variant
        ctx.set_materialize_grads(False)
        if plan.is_like_eager or plan.saved.checked:
            arguments = _that_may_change(ctx, plan, arguments)
        if variant.keeps_all_arguments:
            ctx.save_for_backward(*arguments, *[made[position] for position in variant.kept_results])
        else:
            ctx.rest = [_describe(argument) for argument in arguments]
            kept = [arguments[position] for position in plan.saved.contributing]
            ctx.save_for_backward(*kept, *[made[position] for position in variant.kept_results])
        if not variant.all_outputs_differentiable:
            ctx.mark_non_differentiable(*[made[p] for p in range(plan.outputs) if p not in plan.tangents])
        if variant.bare:
            return made[0]
        return made[: plan.outputs] if plan.saved.intermediates else made

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        """Run the backward kernel, or the differentiable backward if this pass is itself differentiated or mapped."""
        variant: Variant = ctx.variant
        found, plan, used = None, variant.plan, variant.plan.tangents
        if not variant.all_outputs_differentiable or some_missing(cotangents):
            used = tuple([position for position in plan.tangents if cotangents[position] is not None])
            cotangents = tuple([cotangents[position] for position in used])
        if not used:
            return (None,) * len(ctx.needs_input_grad)
        is_first = not came_before(ctx)  # which the next line changes
        saved = saved_for(ctx, plan, used)
        if len(used) < len(plan.tangents):
            plan = plan.of_outputs(used)
        if plan.spared:
            edges = dict(zip(plan.tensors, ctx.next_functions, strict=True))
            plan = plan.narrowed([position for position in plan.gradients if is_asked_for(edges[position][0])])
        if not plan.gradients:
            return (None,) * len(ctx.needs_input_grad)
        if is_first and plan is variant.plan and not (torch.is_grad_enabled() or is_transformed()):
            found = _run_backward(ctx, saved, cotangents, variant)
        if found is None:
            with drawn_again(getattr(ctx, "draw", None)):
                given = _arguments(ctx, saved, variant), cotangents, _intermediates(saved, variant)
                found = differentiated(variant, *given, plan)
        if variant.wants_all_gradients and plan is variant.plan:
            return (None, *found)
        gradients: list[torch.Tensor | None] = [None] * len(ctx.needs_input_grad)
        for position, gradient in zip(plan.gradients, found, strict=True):
            gradients[1 + position] = gradient
        return tuple(gradients)


class Chosen:
    """Variants to try; remembers the last one tried, which took the arguments, and what it made."""

    __slots__ = ("_variants", "made", "variant")

    def __init__(self, variants: Sequence[Variant]) -> None:
        self._variants = variants
        self.variant: Variant
        self.made: Sequence[torch.Tensor]

    def __iter__(self) -> Iterator[Variant]:
        for variant in self._variants:
            self.variant = variant
            yield variant


# `Function.apply` without its test for function transforms, which the caller has made already.
apply: Callable[..., Any] = super(Function, OperatorFunction).apply


def some_missing(cotangents: Sequence[torch.Tensor | None]) -> bool:
    """Whether one is None."""
    for gradient in cotangents:  # noqa: SIM110 - any() with a generator costs three times as much
        if gradient is None:
            return True
    return False


def none_flows(cotangents: Sequence[torch.Tensor | None]) -> bool:
    """Whether all are None."""
    for gradient in cotangents:  # noqa: SIM110 - as above
        if gradient is not None:
            return False
    return True


def _that_may_change(ctx: Any, plan: Plan, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments; those that may change in place before the backward pass without their versions.

    Of the ones that code around it may change, a second pass looks at the versions.
    """
    saved = plan.saved
    unread = set(saved.contributing).difference(saved.arguments, saved.checked) if plan.is_like_eager else ()
    ctx.unread = {position: (arguments[position], arguments[position]._version) for position in unread}
    may_change = {*unread, *saved.checked}
    return tuple(each.data if position in may_change else each for position, each in enumerate(arguments))


def _unchanged(tensor: torch.Tensor, version: int) -> torch.Tensor:
    if tensor._version != version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation"
        )
    return tensor


def _run_backward(ctx: Any, saved: Kept, cotangents: Sequence[Any], variant: Variant) -> Sequence[Any] | None:
    """Run the backward kernel; None if it falls through, because an allocation failed."""
    plan = variant.plan.saved
    sizes: Sequence[int] = ()
    if plan.sizes:
        kept = dict(zip(plan.contributing, saved, strict=False))
        sizes = [_size(ctx, kept, position, dimension) for position, dimension in plan.sizes]
    return run_backward(variant, saved, cotangents, sizes)


def _size(ctx: Any, kept: dict[int, torch.Tensor], position: int, dimension: int) -> int:
    return (kept[position].shape if position in kept else ctx.rest[position][0])[dimension]


def _arguments(ctx: Any, saved: Kept, variant: Variant) -> list[Any]:
    """The arguments of the forward pass; zeros for one that no gradient depends on."""
    kept: dict[int, Any] = dict(zip(variant.plan.saved.contributing, saved, strict=False))
    if variant.plan.is_like_eager:
        kept |= {position: _unchanged(*held) for position, held in ctx.unread.items()}
    if variant.keeps_all_arguments:
        return [kept[position] for position in variant.plan.tensors]
    return [
        kept[position] if position in kept else (zeros(*described) if position in variant.plan.tensors else described)
        for position, described in enumerate(ctx.rest)
    ]


def _intermediates(saved: Kept, variant: Variant) -> Kept:
    count = variant.plan.saved.intermediates
    return saved[-count:] if count else ()


def _describe(argument: Any) -> Any:
    return (tuple(argument.shape), argument.dtype, argument.device) if isinstance(argument, torch.Tensor) else argument


def zeros(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Expanded zeros, with one element of memory."""
    return torch.zeros((), dtype=dtype, device=device).expand(shape)
