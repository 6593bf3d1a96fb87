"""The common part of autograd nodes whose backward pass is an operator: what they save, and the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.binding.autograd.redraw import Draw, drawn_again
from opwright.derivation.forward import differentiable
from opwright.tracing.torch_hooks.functorch import unwrap_dead

GradientsOf = Callable[[tuple[int, ...], tuple[int, ...], tuple[int, ...], int], Any]
"""`(arguments, outputs, the same among tensors, how many tensors) -> operator`, as `Family.backward` gives it."""

_SAVED = object()  # a placeholder for a tensor, which the node saves


@dataclass(slots=True)
class Made:
    """A finished call of an operator, to be recorded.

    Attributes:
        gradients_of: The operators of its gradients.
        places: The position of each of its tensors in what it returned.
        args: The arguments for the backward pass.
        outputs: The tensors that it returned, as the node returns them.
        draw: The generator's state before it drew random numbers; None if it drew none.
        more: Tensors that are saved besides the arguments.
    """

    gradients_of: GradientsOf
    places: Sequence[int]
    args: Sequence[Any]
    outputs: tuple[torch.Tensor, ...]
    draw: Draw | None = None
    more: Sequence[torch.Tensor] = ()


@dataclass(slots=True)
class _Kept:
    """What a node keeps besides tensors: which outputs have cotangents, and their positions in the result."""

    gradients_of: GradientsOf
    places: tuple[int, ...]
    flowing: tuple[int, ...]
    described: list[tuple[tuple[int, ...], torch.dtype]]
    rest: list[Any] | None
    draw: Draw | None
    more: int


def keep(ctx: Any, made: Made) -> tuple[torch.Tensor, ...]:
    """Save on a node what its backward pass needs; return its outputs."""
    outputs, flowing = made.outputs, differentiable(made.outputs)
    ctx.set_materialize_grads(False)
    if len(flowing) < len(outputs):
        ctx.mark_non_differentiable(*[output for place, output in enumerate(outputs) if place not in flowing])
    tensors = [arg for arg in made.args if isinstance(arg, torch.Tensor)]
    ctx.save_for_backward(*tensors, *made.more)
    ctx.kept = _Kept(
        made.gradients_of,
        tuple([made.places[position] for position in flowing]),
        flowing,
        [(tuple(output.shape), output.dtype) for output in outputs],
        None if len(tensors) == len(made.args) else _rest(made.args),
        made.draw,
        len(made.more),
    )
    return outputs


def keep_again(ctx: Any, kept: _Kept, args: Sequence[Any], outputs: tuple[torch.Tensor, ...]) -> None:
    """Save what `keep` saved for a call of the same kind, which drew no random numbers and saved arguments alone."""
    ctx.set_materialize_grads(False)
    if len(kept.flowing) < len(outputs):
        ctx.mark_non_differentiable(*[output for place, output in enumerate(outputs) if place not in kept.flowing])
    ctx.save_for_backward(*(args if kept.rest is None else [arg for arg in args if isinstance(arg, torch.Tensor)]))
    ctx.kept = kept


def _rest(args: Sequence[Any]) -> list[Any]:
    return [_SAVED if isinstance(arg, torch.Tensor) else arg for arg in args]


def _call(operator: Callable[..., Any], *args: Any) -> Any:
    return operator(*args)


def gradients(
    ctx: Any,
    cotangents: Sequence[torch.Tensor | None],
    call: Callable[..., Any] = _call,
    *,
    wanted: tuple[int, ...] | None = None,
    saved: Sequence[torch.Tensor] | None = None,
) -> tuple[torch.Tensor | None, ...]:
    """The gradients of a node, for the call and each of its arguments.

    Args:
        ctx: The node.
        cotangents: Cotangents of its outputs.
        call: Calls the operator of the gradients.
        wanted: Positions of the arguments whose gradients are computed; None for all that are needed.
        saved: The tensors that it saved, which can be asked for once under checkpointing; None if they were not yet.
    """
    kept: _Kept = ctx.kept
    needed = ctx.needs_input_grad
    found: list[torch.Tensor | None] = [None] * len(needed)
    if wanted is None:
        wanted = tuple([position for position, is_needed in enumerate(needed[1:]) if is_needed])
    used = [(place, p) for place, p in zip(kept.places, kept.flowing, strict=True) if cotangents[p] is not None]
    if not wanted or not used:
        return tuple(found)
    places, flowing = zip(*used, strict=True)
    operator = kept.gradients_of(wanted, places, flowing, len(kept.described))
    saved = ctx.saved_tensors if saved is None else saved
    tangents = [cotangents[position] for position in flowing]
    given = [*_arguments(kept, saved), *tangents]  # perhaps of a level of torch.func that has ended
    alive = [unwrap_dead(value) if isinstance(value, torch.Tensor) else value for value in given]
    result = _drawing(kept.draw, call, operator, *alive)
    for position, gradient in zip(wanted, (result,) if isinstance(result, torch.Tensor) else result, strict=True):
        found[1 + position] = gradient
    return tuple(found)


def kept(ctx: Any, saved: Sequence[torch.Tensor]) -> tuple[Sequence[Any], Sequence[torch.Tensor]]:
    """The arguments of a node, and what else it saved, from all tensors that it saved."""
    return _arguments(ctx.kept, saved), saved[len(saved) - ctx.kept.more :]


def _arguments(kept: _Kept, saved: Sequence[torch.Tensor]) -> Sequence[Any]:
    if kept.rest is None:
        return saved[: len(saved) - kept.more]
    remaining = iter(saved)
    return [next(remaining) if given is _SAVED else given for given in kept.rest]


def described(ctx: Any) -> Sequence[tuple[tuple[int, ...], torch.dtype]]:
    """Sizes and dtypes of the outputs of a node."""
    kept: _Kept = ctx.kept
    return kept.described


def _drawing(draw: Draw | None, call: Callable[..., Any], *args: Any) -> Any:
    if draw is None:
        return call(*args)
    with drawn_again(draw):
        return call(*args)
