"""The part that nodes of autograd have in common whose backward pass is an operator: what they keep, and its call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_unflatten

from opwright.binding.autograd import zeros
from opwright.binding.redraw import drawn_again
from opwright.derivation.forward import differentiable

GradientsOf = Callable[[tuple[int, ...], tuple[int, ...], tuple[int, ...], int], Any]
"""`(arguments, outputs, the same among tensors, how many tensors) -> operator`, as `Family.backward` gives it."""


class Step:
    """One call of an operator that is recorded.

    Attributes:
        gradients_of: The operators of its gradients.
        leaves: What it returned, laid out flat.
        layout: The structure of that.
        generator: Where the generator of random numbers was before; None if none were drawn.
    """

    def __init__(self, gradients_of: GradientsOf) -> None:
        self.gradients_of = gradients_of
        self.leaves: list[Any] = []
        self.layout: Any = None
        self.generator: torch.Tensor | None = None

    @property
    def tensors(self) -> list[int]:
        """Where the tensors stand among the leaves."""
        return [place for place, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]

    def rebuilt(self, outputs: Sequence[torch.Tensor]) -> Any:
        """What the operator returned, with other tensors."""
        leaves = list(self.leaves)
        for place, output in zip(self.tensors, outputs, strict=True):
            leaves[place] = output
        return tree_unflatten(leaves, self.layout)


def keep(
    ctx: Any, step: Step, args: Sequence[Any], outputs: Sequence[torch.Tensor], more: Sequence[torch.Tensor] = ()
) -> None:
    """Keep on a node what its backward pass needs: the arguments, and more tensors behind them."""
    places = differentiable(outputs)
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*[output for place, output in enumerate(outputs) if place not in places])
    ctx.step = step
    ctx.described = [(tuple(output.shape), output.dtype) for output in outputs]
    ctx.rest = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
    ctx.tensors = [isinstance(arg, torch.Tensor) for arg in args]
    ctx.save_for_backward(*[arg for arg in args if isinstance(arg, torch.Tensor)], *more)


def _call(operator: Callable[..., Any], *args: Any) -> Any:
    return operator(*args)


def gradients(
    ctx: Any,
    incoming: Sequence[torch.Tensor | None],
    call: Callable[..., Any] = _call,
    *,
    wanted: tuple[int, ...] | None = None,
) -> tuple[torch.Tensor | None, ...]:
    """The gradients of a node that was given a step and the arguments: one for each of these.

    Args:
        ctx: The node.
        incoming: Incoming gradients of its outputs.
        call: Calls the operator of the gradients.
        wanted: Positions of the arguments whose gradients are computed; None for all that are asked for.
    """
    step: Step = ctx.step
    found: list[torch.Tensor | None] = [None] * len(ctx.needs_input_grad)
    if wanted is None:
        wanted = tuple(position - 1 for position, needed in enumerate(ctx.needs_input_grad) if needed)
    places = differentiable(step.leaves)
    flowing = tuple(step.tensors.index(place) for place in places)
    if not wanted or all(incoming[position] is None for position in flowing):
        return tuple(found)
    tangents = [zeros(*ctx.described[p]) if incoming[p] is None else incoming[p] for p in flowing]
    saved = iter(ctx.saved_tensors)
    args = [next(saved) if tensor else given for tensor, given in zip(ctx.tensors, ctx.rest, strict=True)]
    with drawn_again(step.generator):
        result = call(step.gradients_of(wanted, places, flowing, len(step.tensors)), *args, *tangents)
    for position, gradient in zip(wanted, tree_leaves(result), strict=True):
        found[1 + position] = gradient
    return tuple(found)
