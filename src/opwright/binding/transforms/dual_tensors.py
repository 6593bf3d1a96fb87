"""An operator on dual tensors of `torch.autograd.forward_ad`: its forward-mode operator gives results and tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import Function, forward_ad

from opwright.binding.autograd.derived_node import Made, gradients, keep
from opwright.binding.autograd.redraw import noting_draws
from opwright.binding.returned import Returned
from opwright.binding.transforms.transformed import Served, Transformed
from opwright.derivation.forward import is_differentiable, split
from opwright.tracing.torch_hooks import functorch


def serve_dual(
    transforms: Transformed, run_reference: Callable[[Sequence[Any]], Served], args: Sequence[Any]
) -> Served:
    """Serve a call with a dual tensor among the arguments.

    Args:
        transforms: The operator's transforms.
        run_reference: Runs the function as written, for batches of the legacy `vmap`, whose tangents are hidden, and
            for tangents of another dtype than their argument's.
        args: The arguments, in order.
    """
    primals, tangents = list(args), {}
    for position, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            if functorch.is_in_old_batch(arg):
                return run_reference(args)
            primals[position], tangent = forward_ad.unpack_dual(arg)
            if tangent is not None:
                if tangent.dtype is not arg.dtype:  # what is computed from it has its dtype
                    return run_reference(args)
                tangents[position] = tangent
    if any(map(functorch.is_in_old_batch, tangents.values())):
        return run_reference(args)
    forward = transforms.jvp(tuple(tangents))
    found, draw = noting_draws(forward, *primals, *tangents.values())
    result, moved = split(found)
    returned, remaining = Returned(result), iter(moved)
    outputs = returned.tensors
    if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        detached = tuple([output.detach() for output in outputs])
        recorded = _record(Made(transforms.backward, returned.places, args, detached, draw), *primals)
        outputs = [  # no tangent flows through detached values
            node if output.requires_grad else output for node, output in zip(recorded, outputs, strict=True)
        ]
    duals = [
        functorch.make_dual(output, next(remaining)) if is_differentiable(output) else output for output in outputs
    ]
    return returned.rebuilt(duals), forward.last_rung


class _BesideTangents(Function):
    """Records the operator of the gradients on dual tensors, so that gradients have tangents."""

    @staticmethod
    def forward(ctx: Any, made: Made, *primals: Any) -> Any:
        return keep(ctx, made)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        """Call the operator of the gradients."""
        return gradients(ctx, cotangents)


_record: Callable[..., Any] = super(Function, _BesideTangents).apply
