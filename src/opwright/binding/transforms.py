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
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from opwright.binding.autograd import zeros
from opwright.binding.redraw import drawn_again, noting_draws
from opwright.binding.rungs import RungName
from opwright.derivation.batched import Randomness
from opwright.derivation.forward import differentiable
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
        """(arguments…, tangents of those at `moving`…) → (results, tangents)."""

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
        return _in_forward_mode(transforms, args)
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
    below, dimensions = list(args), {}
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            below[position], dimension = level.unbatched(arg)
            if dimension is not None:
                dimensions[position] = dimension
    with level.below():
        if not dimensions:
            return operator(*below), operator.last_rung
        for position, dimension in dimensions.items():
            below[position] = below[position].movedim(dimension, 0)
        batched = transforms.batched(tuple(dimensions), level.randomness)
        result = batched(*below)
    return tree_map_only(torch.Tensor, level.add_batch, result), batched.last_rung


def _pushed_forward(level: Level, operator: Transformable, transforms: Transformed, args: Sequence[Any]) -> Served:
    tangents = {}
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor) and level.has(arg) and functorch.is_forward_mode():
            tangent = forward_ad.unpack_dual(arg).tangent
            if tangent is not None:
                tangents[position] = level.unwrap(tangent)
    below = [level.unwrap(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
    with level.below():
        if not tangents:
            return operator(*below), operator.last_rung
        forward = transforms.jvp(tuple(tangents))
        returned, moved = forward(*below, *tangents.values())
    returned = tree_map_only(torch.Tensor, level.wrap, returned)
    return _dual(returned, [level.wrap(tangent) for tangent in moved]), forward.last_rung


def _in_forward_mode(transforms: Transformed, args: Sequence[Any]) -> Served:
    primals, tangents = list(args), {}
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            primals[position], tangent = forward_ad.unpack_dual(arg)
            if tangent is not None:
                tangents[position] = tangent
    forward = transforms.jvp(tuple(tangents))
    return _dual(*forward(*primals, *tangents.values())), forward.last_rung


def _dual(returned: Any, tangents: Sequence[torch.Tensor]) -> Any:
    leaves, layout = tree_flatten(returned)
    for place, tangent in zip(differentiable(leaves), tangents, strict=True):
        leaves[place] = forward_ad.make_dual(leaves[place], tangent)
    return tree_unflatten(leaves, layout)


def _recorded(level: Level, operator: Transformable, transforms: Transformed, args: Sequence[Any]) -> Served:
    tensors = [(p, arg) for p, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
    wanted = tuple(p for p, tensor in tensors if level.has(tensor) and tensor.requires_grad)
    if not wanted or not torch.is_grad_enabled():
        with level.below():
            below = [level.unwrap(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
            return operator(*below), operator.last_rung
    lifted = [level.lift(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
    step = _Step(level, operator, transforms, wanted)
    with functorch.recording_at_one_level():
        outputs = _record(step, *lifted)
    return step.rebuilt(outputs), operator.last_rung


class _Step:
    """What a node at one level must know, and what it finds out."""

    def __init__(self, level: Level, operator: Transformable, transforms: Transformed, wanted: tuple[int, ...]) -> None:
        self.level = level
        self.operator = operator
        self.transforms = transforms
        self.wanted = wanted
        self.leaves: list[Any] = []
        self.layout: Any = None
        self.generator: torch.Tensor | None = None

    def rebuilt(self, outputs: Sequence[torch.Tensor]) -> Any:
        """The structure that the operator returns."""
        remaining = iter(outputs)
        leaves = [next(remaining) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        return tree_unflatten(leaves, self.layout)


class _OneLevel(_SingleLevelFunction):
    """Runs an operator below a level and records the operator of its gradients."""

    @staticmethod
    def forward(ctx: Any, step: _Step, *args: Any) -> Any:
        level = step.level
        below = [level.unwrap(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True), level.below():
            result, step.generator = noting_draws(lambda: step.operator(*below))
        step.leaves, step.layout = tree_flatten(result)
        outputs = tuple(level.wrap(leaf) for leaf in step.leaves if isinstance(leaf, torch.Tensor))
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[o for o in outputs if not (o.is_floating_point() or o.is_complex())])
        ctx.step = step
        ctx.described = [(tuple(output.shape), output.dtype) for output in outputs]
        ctx.rest = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
        ctx.tensors = [isinstance(arg, torch.Tensor) for arg in args]
        ctx.save_for_backward(*[arg for arg in args if isinstance(arg, torch.Tensor)])
        return outputs

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        """Call the operator of the gradients, at whatever level this pass runs."""
        step: _Step = ctx.step
        gradients: list[torch.Tensor | None] = [None] * len(ctx.needs_input_grad)
        wanted = tuple(position for position in step.wanted if ctx.needs_input_grad[1 + position])
        places = differentiable(step.leaves)
        tensors = [place for place, leaf in enumerate(step.leaves) if isinstance(leaf, torch.Tensor)]
        flowing = tuple(tensors.index(place) for place in places)
        if not wanted or all(incoming[position] is None for position in flowing):
            return tuple(gradients)
        tangents = [zeros(*ctx.described[p]) if incoming[p] is None else incoming[p] for p in flowing]
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if tensor else given for tensor, given in zip(ctx.tensors, ctx.rest, strict=True)]
        backward = step.transforms.backward(wanted, places, flowing, len(tensors))
        with drawn_again(step.generator):
            found = backward(*args, *tangents)
        found = (found,) if isinstance(found, torch.Tensor) else found
        for position, gradient in zip(wanted, found, strict=True):
            gradients[1 + position] = gradient
        return tuple(gradients)


_record: Callable[..., Any] = _OneLevel.apply  # type: ignore[attr-defined]
