"""An operator under function transforms and in forward mode calls the transform of itself, one level below.

at the level of      an operator f calls, below that level
vmap                 vmap(f), on arguments whose batch is their first dimension
jvp, dual tensors    jvp(f), on arguments and their tangents
grad                 f, and records a node whose backward is the operator backward(f)

Each of these is an operator, with kernels of its own, so that levels may be nested as one likes. Below the last level
the call is an ordinary one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch.autograd import Function, forward_ad
from torch.autograd.function import _SingleLevelFunction

from opwright.binding.derived_node import Made, gradients, keep
from opwright.binding.redraw import noting_draws
from opwright.binding.returned import Returned
from opwright.binding.rungs import RungName
from opwright.derivation.batched import Randomness
from opwright.derivation.forward import is_differentiable, split
from opwright.tracing import functorch
from opwright.tracing.functorch import Level, Transform

Served = tuple[Any, RungName | None]
"""A result, and the rung that computed it."""


class Transformable(Protocol):
    """What is asked of an operator."""

    @property
    def last_rung(self) -> RungName | None:
        """The rung that served the last call."""

    def __call__(self, *args: Any) -> Any:
        """Run it on arguments in order."""


class Transformed(Protocol):
    """The transforms of one operator, which are operators."""

    def backward(
        self, wanted: tuple[int, ...], places: tuple[int, ...], tangents: tuple[int, ...], outputs: int
    ) -> Transformable:
        """(arguments…, incoming gradients…) → gradients of the arguments at `wanted`."""

    def jvp(self, moving: tuple[int, ...]) -> Transformable:
        """(arguments…, tangents of those at `moving`…) → results and tangents."""

    def batched(self, positions: tuple[int, ...], randomness: Randomness) -> Transformable:
        """The operator over the first dimension of the arguments at `positions`."""


def are_transformed(args: Sequence[Any]) -> bool:
    """Whether a function transform is under way, or an argument is a dual tensor."""
    return functorch.are_active() or (functorch.is_forward_mode() and any(map(functorch.is_dual, args)))


def serve_transformed(
    operator: Transformable, transforms: Transformed, reference: Callable[..., Any], args: Sequence[Any]
) -> Served:
    """Serve a call for which `are_transformed` says yes.

    Args:
        operator: The operator.
        transforms: Its transforms.
        reference: The function as written, for transforms that are none of the three.
        args: The arguments, in order.
    """
    if not functorch.are_active():
        return _in_forward_mode(transforms, reference, args)
    args = [functorch.unwrap_dead(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
    level = functorch.innermost()
    match level.transform:
        case Transform.VMAP:
            return _over_batch(level, operator, transforms, args)
        case Transform.JVP:
            return _pushed_forward(level, operator, transforms, args)
        case Transform.GRAD:
            return _recorded(level, operator, transforms, args)
    return reference(*args), "composed"


def _over_batch(level: Level, operator: Transformable, transforms: Transformed, args: Sequence[Any]) -> Served:
    below, positions, moved = list(args), [], []
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            below[position], dimension = level.unbatched(arg)
            if dimension is not None:
                positions.append(position)
                if dimension:
                    moved.append((position, dimension))
    with level.below():
        if not positions:
            return operator(*below), operator.last_rung
        for position, dimension in moved:
            below[position] = below[position].movedim(dimension, 0)
        batched = transforms.batched(tuple(positions), level.randomness)
        result = batched(*below)
    return _mapped(level.add_batch, result), batched.last_rung


def _pushed_forward(level: Level, operator: Transformable, transforms: Transformed, args: Sequence[Any]) -> Served:
    below, moving, tangents = list(args), [], []
    follows = functorch.is_forward_mode()
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            below[position] = level.unwrap(arg)
            if follows and level.has(arg) and (tangent := functorch.tangent_of(arg)) is not None:
                moving.append(position)
                tangents.append(level.unwrap(tangent))
    with level.below():
        if not moving:
            return operator(*below), operator.last_rung
        forward = transforms.jvp(tuple(moving))
        returned, moved = split(forward(*below, *tangents))
    return _dual(_mapped(level.wrap, returned), [level.wrap(tangent) for tangent in moved]), forward.last_rung


def _mapped(change: Callable[[torch.Tensor], torch.Tensor], result: Any) -> Any:
    """The same structure with other tensors."""
    if isinstance(result, torch.Tensor):
        return change(result)
    returned = Returned(result)
    return returned.rebuilt([change(returned.leaves[place]) for place in returned.tensors])


def _dual(result: Any, tangents: Sequence[torch.Tensor]) -> Any:
    """A result whose differentiable tensors have tangents."""
    returned = Returned(result)
    remaining = iter(tangents)
    return returned.rebuilt(
        [
            functorch.make_dual(tensor, next(remaining)) if is_differentiable(tensor) else tensor
            for tensor in (returned.leaves[place] for place in returned.tensors)
        ]
    )


def _recorded(level: Level, operator: Transformable, transforms: Transformed, args: Sequence[Any]) -> Served:
    below, lifted, is_wanted = list(args), list(args), False
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            below[position], lifted[position] = level.unwrap(arg), level.lift(arg)
            is_wanted = is_wanted or (level.has(arg) and arg.requires_grad)
    with level.below():
        if not (is_wanted and torch.is_grad_enabled()):
            return operator(*below), operator.last_rung
        result, generator = noting_draws(operator, *below)
    returned = Returned(result)
    outputs = tuple([level.wrap(returned.leaves[place]) for place in returned.tensors])
    made = Made(transforms.backward, returned, lifted, outputs, generator)
    return returned.rebuilt(functorch.record_at_one_level(_record, made, *lifted)), operator.last_rung


class _OneLevel(_SingleLevelFunction):
    """Records the operator of the gradients at the level of `grad`."""

    @staticmethod
    def forward(ctx: Any, made: Made, *lifted: Any) -> Any:
        return keep(ctx, made)

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        """Call the operator of the gradients, at whatever level this pass runs."""
        return gradients(ctx, incoming)


_record: Callable[..., Any] = _OneLevel.apply  # type: ignore[attr-defined]


def _in_forward_mode(transforms: Transformed, reference: Callable[..., Any], args: Sequence[Any]) -> Served:
    primals, tangents = list(args), {}
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            if functorch.is_in_old_batch(arg):
                return reference(*args), "composed"
            primals[position], tangent = forward_ad.unpack_dual(arg)
            if tangent is not None:
                tangents[position] = tangent
    if any(map(functorch.is_in_old_batch, tangents.values())):
        return reference(*args), "composed"
    forward = transforms.jvp(tuple(tangents))
    found, generator = noting_draws(forward, *primals, *tangents.values())
    result, moved = split(found)
    if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        returned = Returned(result)
        outputs = tuple([returned.leaves[place].detach() for place in returned.tensors])
        made = Made(transforms.backward, returned, args, outputs, generator)
        result = returned.rebuilt(_record_beside_tangents(made, *primals))
    return _dual(result, moved), forward.last_rung


class _BesideTangents(Function):
    """Records the operator of the gradients on dual tensors, so that gradients have tangents."""

    @staticmethod
    def forward(ctx: Any, made: Made, *primals: Any) -> Any:
        return keep(ctx, made)

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        """Call the operator of the gradients."""
        return gradients(ctx, incoming)


_record_beside_tangents: Callable[..., Any] = super(Function, _BesideTangents).apply
