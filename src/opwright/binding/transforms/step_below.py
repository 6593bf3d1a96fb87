"""From a level of torch's function transforms to the one below: the operator to call there, and its result.

The extension module has the same function in C++ (`native/step_below.h`), which takes a fifth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.function import _SingleLevelFunction

from opwright.binding.autograd.derived_node import Made, gradients, keep
from opwright.binding.autograd.redraw import noting_draws
from opwright.binding.returned import Returned
from opwright.binding.transforms.transformed import Served, Transformable, Transformed
from opwright.derivation.forward import is_differentiable, split
from opwright.tracing.torch_hooks import functorch
from opwright.tracing.torch_hooks.functorch import Level, Transform


def step_below(operator: Transformable, transforms: Transformed, args: Sequence[Any]) -> Served | None:
    """Serve a call by the operator of the innermost transform.

    None if that is not grad, vmap or jvp, if a tangent is of another dtype than its argument, or if a `vmap` has none
    of the arguments in its batch and random numbers are drawn, for each entry or to raise its error.

    Args:
        operator: The operator.
        transforms: Its transforms.
        args: The arguments, in order.
    """
    alive = [functorch.unwrap_dead(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
    level = functorch.innermost()
    match level.transform:
        case Transform.VMAP:
            return _over_batch(level, operator, transforms, alive)
        case Transform.JVP:
            return _pushed_forward(level, operator, transforms, alive)
        case Transform.GRAD:
            return _recorded(level, operator, transforms, alive)
    return None


def _over_batch(level: Level, operator: Transformable, transforms: Transformed, args: list[Any]) -> Served | None:
    positions, moved = [], []
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            args[position], dimension = level.unbatched(arg)
            if dimension is not None:
                positions.append(position)
            if dimension:
                moved.append((position, dimension))
    with level.below():
        if not positions:
            result, draw = noting_draws(operator, *args)
            if draw is None or level.randomness == "same":
                return result, operator.last_rung
            torch.set_rng_state(draw.generator)
            return None
        for position, dimension in moved:
            args[position] = args[position].movedim(dimension, 0)
        batched = transforms.batched(tuple(positions), level.randomness)
        returned = Returned(batched(*args))
    return returned.rebuilt([level.add_batch(tensor) for tensor in returned.tensors]), batched.last_rung


def _pushed_forward(level: Level, operator: Transformable, transforms: Transformed, args: list[Any]) -> Served | None:
    moving, tangents = [], []
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor) and level.has(arg):
            args[position] = level.unwrap(arg)
            tangent = functorch.tangent_of(arg) if functorch.is_forward_mode() else None
            if tangent is not None:
                if tangent.dtype is not arg.dtype:  # what is computed from it has its dtype
                    return None
                moving.append(position)
                tangents.append(level.unwrap(tangent))
    with level.below():
        if not moving:
            return operator(*args), operator.last_rung
        forward = transforms.jvp(tuple(moving))
        result, moved = split(forward(*args, *tangents))
    returned, remaining = Returned(result), iter(moved)
    outputs = [level.wrap(tensor) for tensor in returned.tensors]
    for position, output in enumerate(outputs):
        if is_differentiable(output):
            outputs[position] = functorch.make_dual(output, level.wrap(next(remaining)))
    return returned.rebuilt(outputs), forward.last_rung


def _recorded(level: Level, operator: Transformable, transforms: Transformed, args: list[Any]) -> Served:
    lifted, is_wanted = list(args), False
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            is_wanted = is_wanted or (level.has(arg) and arg.requires_grad)
            args[position], lifted[position] = level.unwrap(arg), level.lift(arg)
    is_recorded = is_wanted and torch.is_grad_enabled()
    with level.below():
        if not is_recorded:
            return operator(*args), operator.last_rung
        result, draw = noting_draws(operator, *args)
    returned = Returned(result)
    outputs = tuple([level.wrap(tensor) for tensor in returned.tensors])
    made = Made(transforms.backward, returned.places, lifted, outputs, draw)
    return returned.rebuilt(functorch.record_at_one_level(_record, made, *lifted)), operator.last_rung


class _OneLevel(_SingleLevelFunction):
    """Records the operator of the gradients at the level of `grad`."""

    @staticmethod
    def forward(ctx: Any, made: Made, *lifted: Any) -> Any:
        return keep(ctx, made)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        """Call the operator of the gradients, at whatever level this pass runs."""
        return gradients(ctx, cotangents)


_record: Callable[..., Any] = _OneLevel.apply  # type: ignore[attr-defined]
