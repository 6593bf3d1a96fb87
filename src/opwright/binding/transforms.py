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
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from opwright.binding.derived_node import Step, gradients, keep
from opwright.binding.redraw import noting_draws
from opwright.binding.rungs import RungName
from opwright.derivation.batched import Randomness
from opwright.derivation.forward import differentiable, split
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
    return _mapped(level.add_batch, result), batched.last_rung


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
        returned, moved = split(forward(*below, *tangents.values()))
    return _dual(_mapped(level.wrap, returned), [level.wrap(tangent) for tangent in moved]), forward.last_rung


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
    step = _Dual(transforms, args)
    found, step.generator = noting_draws(lambda: forward(*primals, *tangents.values()))
    returned, moved = split(found)
    if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        step.leaves, step.layout = tree_flatten(returned)
        returned = step.rebuilt(_record_beside_tangents(step, *primals))
    return _dual(returned, moved), forward.last_rung


def _mapped(change: Callable[[torch.Tensor], torch.Tensor], result: Any) -> Any:
    """The same structure with other tensors."""
    if isinstance(result, torch.Tensor):
        return change(result)
    if type(result) is tuple and all(isinstance(member, torch.Tensor) for member in result):
        return tuple([change(member) for member in result])
    return tree_map_only(torch.Tensor, change, result)


def _dual(returned: Any, tangents: Sequence[torch.Tensor]) -> Any:
    if isinstance(returned, torch.Tensor) and tangents:
        return forward_ad.make_dual(returned, tangents[0])
    leaves, layout = tree_flatten(returned)
    for place, tangent in zip(differentiable(leaves), tangents, strict=True):
        leaves[place] = forward_ad.make_dual(leaves[place], tangent)
    return tree_unflatten(leaves, layout)


def _recorded(level: Level, operator: Transformable, transforms: Transformed, args: Sequence[Any]) -> Served:
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    wanted = any(level.has(tensor) and tensor.requires_grad for tensor in tensors)
    if not wanted or not torch.is_grad_enabled():
        with level.below():
            below = [level.unwrap(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
            return operator(*below), operator.last_rung
    lifted = [level.lift(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
    step = _Below(level, operator, transforms)
    with functorch.recording_at_one_level():
        outputs = _record(step, *lifted)
    return step.rebuilt(outputs), operator.last_rung


class _Below(Step):
    """A call below a level."""

    def __init__(self, level: Level, operator: Transformable, transforms: Transformed) -> None:
        super().__init__(transforms.backward)
        self.level = level
        self.operator = operator


class _OneLevel(_SingleLevelFunction):
    """Runs an operator below a level and records the operator of its gradients."""

    @staticmethod
    def forward(ctx: Any, step: _Below, *args: Any) -> Any:
        level = step.level
        below = [level.unwrap(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True), level.below():
            result, step.generator = noting_draws(lambda: step.operator(*below))
        step.leaves, step.layout = tree_flatten(result)
        outputs = tuple(level.wrap(step.leaves[place]) for place in step.tensors)
        keep(ctx, step, args, outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        """Call the operator of the gradients, at whatever level this pass runs."""
        return gradients(ctx, incoming)


_record: Callable[..., Any] = _OneLevel.apply  # type: ignore[attr-defined]


class _Dual(Step):
    """A call with dual tensors, of which everything is known but the gradients."""

    def __init__(self, transforms: Transformed, args: Sequence[Any]) -> None:
        super().__init__(transforms.backward)
        self.args = args


class _BesideTangents(Function):
    """Records the operator of the gradients on dual tensors, so that gradients have tangents."""

    @staticmethod
    def forward(ctx: Any, step: _Dual, *primals: Any) -> Any:
        outputs = tuple(step.leaves[place].detach() for place in step.tensors)
        keep(ctx, step, step.args, outputs)
        step.args = ()
        return outputs

    @staticmethod
    def backward(ctx: Any, *incoming: torch.Tensor | None) -> Any:
        """Call the operator of the gradients."""
        return gradients(ctx, incoming)


_record_beside_tangents: Callable[..., Any] = super(Function, _BesideTangents).apply
