"""Calls with DTensors: place what the rules ask for, run the operator on what this process has, describe the results.

Everything that decides what is sent is known to all processes alike, and decided before anything is sent; so none waits
for another that does something else. A process without elements computes nothing. Errors after that leave the call: the
function on DTensors would wait for processes that have left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.autograd import Function
from torch.distributed.tensor import DTensor, Replicate

from opwright.binding.autograd.derived_node import Made, gradients, keep, keep_again
from opwright.binding.environment import SERVED_DEFAULTS, is_compiling_or_exporting, is_overheard
from opwright.binding.own_errors import runs_reference
from opwright.binding.variants.kinds import constant_key
from opwright.errors import MixedPlacement
from opwright.operators.base import BaseOperator
from opwright.sharding.plan import Plan, plan_for
from opwright.sharding.quick import short_way, simply
from opwright.sharding.strided import plan_as_placed
from opwright.tracing.torch_hooks.spread import (
    is_usual,
    local_of,
    only_counted,
    replicates_implicitly,
    spec_of,
    spread,
    uncounted,
)

_plans: WeakKeyDictionary[BaseOperator, dict[Any, Plan | None]] = WeakKeyDictionary()
_MOST_PLANS = 1024
NOTHING: Mapping[str, torch.Tensor] = {}
_NO_NAMES: dict[str, Any] = {}
_dispatch_modes = torch._C._len_torch_dispatch_stack
_new = DTensor.__new__


@runs_reference
def serve_sharded(operator: BaseOperator, args: Sequence[Any], known: Mapping[str, torch.Tensor] | None = None) -> Any:
    """Serve a call with DTensors among flat arguments.

    Args:
        operator: The operator.
        args: Its arguments.
        known: Reductions of other calls on the same arguments, by the digests of what they are computed by.

    Returns:
        The result; NotImplemented if no rule is known, or if something must see the operations of the reference.

    Raises:
        MixedPlacement: If there are DTensors of two meshes, or DTensors and plain tensors.
    """
    if is_compiling_or_exporting() or (is_overheard() and not _is_only_counted()):
        return NotImplemented
    mesh, args = mesh_of(operator, args)
    known = known or {}
    plan = _plan(operator, args, mesh, known)
    if plan is None:
        return NotImplemented
    if operator.server.serve_spread is None:
        operator.server.serve_spread = short_way(operator, _plans[operator], _Call)
    if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        return plan.returned.rebuilt(_apply(_Call(operator, plan, mesh, known), *args))
    return plan.returned.rebuilt(run(operator, plan, args, dict(known)))


def run(operator: BaseOperator, plan: Plan, args: Sequence[Any], known: dict[str, torch.Tensor]) -> Sequence[Any]:
    """Run an operator by a plan; returns DTensors, and adds to what reductions are known."""
    if torch.is_grad_enabled():
        with torch.no_grad():
            return run(operator, plan, args, known)
    if plan.moves:
        args = list(args)
        for position in plan.moves:
            args[position] = args[position].redistribute(placements=plan.targets[position])
    made: Sequence[torch.Tensor]
    if plan.stages is not None and (plan.stages.is_empty or not plan.fills):
        made = plan.stages.computed([local_of(arg) if isinstance(arg, DTensor) else arg for arg in args], known)
        made = _scaled(plan, made) if made else [fill.clone() for fill in plan.fills]
        operator.server.last_rung = plan.stages.last.last_rung
    elif plan.fills:
        made = [fill.clone() for fill in plan.fills]
    else:
        given = [local_of(arg) if isinstance(arg, DTensor) else arg for arg in args]
        with uncounted():
            made = _scaled(plan, plan.returned.like(operator(*given)))
    return [spread(local, spec) for local, spec in zip(made, plan.specs, strict=True)]


def _scaled(plan: Plan, made: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    if not plan.scales:
        return made
    return [one if factor == 1 else one * factor for one, factor in zip(made, plan.factors, strict=True)]


def _is_only_counted() -> bool:
    return only_counted() and not torch._C._is_any_autocast_enabled() and torch.get_default_dtype() in SERVED_DEFAULTS


def mesh_of(operator: BaseOperator, args: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """The mesh of a call, and its arguments, where plain tensors became DTensors if PyTorch is told to make them some.

    Args:
        operator: The operator.
        args: Flat arguments, with a DTensor among them.

    Raises:
        MixedPlacement: If there are DTensors of two meshes, or DTensors and plain tensors.
    """
    mesh = None
    for arg in args:
        if isinstance(arg, DTensor):
            other = spec_of(arg).mesh
            if mesh is not None and other is not mesh and other != mesh:
                raise MixedPlacement(
                    f"{operator.name} is called with DTensors of two meshes, {mesh} and {other}",
                    hint="distribute its arguments over one mesh",
                )
            mesh = other
    plain = next(
        (arg for arg in args if isinstance(arg, torch.Tensor) and arg.ndim and not isinstance(arg, DTensor)), None
    )
    if plain is None:
        return mesh, args
    if replicates_implicitly():
        return mesh, [placed_on(arg, mesh) for arg in args]
    raise MixedPlacement(
        f"{operator.name} is called with DTensors and with a plain tensor of shape {[*plain.shape]}",
        hint="DTensor.from_local(tensor, mesh, [Replicate()]) makes it one, if every process has all of it",
    )


def _plan(operator: BaseOperator, args: Sequence[Any], mesh: Any, known: Mapping[str, torch.Tensor]) -> Plan | None:
    plans = _plans.get(operator)
    if plans is None:
        plans = _plans[operator] = {}
    key = (operator.outside_now(), *[spec_of(a) if isinstance(a, DTensor) else _key(a) for a in args], *known)
    found = plans.get(key, plans)
    if found is not plans:
        return found  # type: ignore[return-value]
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    usual = all(is_usual(spec_of(arg)) for arg in args if isinstance(arg, DTensor))
    plans[key] = plan_for(operator, args, mesh, known) if usual else plan_as_placed(operator, args, mesh)
    return plans[key]


def _key(value: Any) -> Any:
    return (value.dtype, value.device) if isinstance(value, torch.Tensor) else constant_key(value)


class _Call:
    """Calls to be recorded; what their nodes keep besides tensors is the same for all, and made by the first."""

    __slots__ = ("is_known", "kept", "known", "mesh", "operator", "plan", "serve", "spec")

    def __init__(
        self, operator: BaseOperator, plan: Plan, mesh: Any, known: Mapping[str, torch.Tensor] = NOTHING
    ) -> None:
        self.operator, self.plan, self.mesh, self.known = operator, plan, mesh, known
        self.serve = operator.server.serve
        self.kept: Any = None
        self.spec: Any = plan.specs[0] if plan.specs else None
        self.is_known = False

    def __call__(self, args: Sequence[Any], given: Sequence[Any]) -> Any:
        """A call by a simple plan, with what this process has of its arguments."""
        if self.is_known:
            return _apply_again((self, tuple(given)), *args)
        made = self.plan.returned.rebuilt(_apply(self, *args))
        kept = self.kept
        self.is_known = kept is not None and self.plan.is_bare and kept.rest is None and bool(kept.flowing)
        return made


class _Node(Function):
    @staticmethod
    def forward(ctx: Any, call: Any, *args: Any) -> Any:
        ctx.mesh, known = call.mesh, {}
        if call.plan.is_simple and not _dispatch_modes():
            given = [local_of(arg) if isinstance(arg, DTensor) else arg for arg in args]
            made = simply(call.plan, call.serve, given)
        else:
            made = tuple(run(call.operator, call.plan, args, known := dict(call.known)))
        # on a mesh of several dimensions, they are those of the rows of this process, and gradients may need others
        ctx.digests = tuple(known) if call.mesh.ndim == 1 else ()
        if call.kept is None or ctx.digests:
            more = [known[digest] for digest in ctx.digests]
            keep(ctx, Made(call.operator.transforms.backward, call.plan.returned.places, args, made, more=more))
            call.kept = None if more else ctx.kept
        else:
            keep_again(ctx, call.kept, args, made)
        return made

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        """Call the operator of the gradients on DTensors."""
        saved = ctx.saved_tensors
        known = dict(zip(ctx.digests, saved[len(saved) - len(ctx.digests) :], strict=True))
        return gradients(ctx, cotangents, lambda operator, *args: _called(operator, args, ctx.mesh, known), saved=saved)


class _Again(_Node):
    """The node of a call that only differs from one before in its tensors: all arguments and the result are some."""

    @staticmethod
    def forward(ctx: Any, planned: Any, *args: Any) -> Any:
        call, given = planned
        ctx.call = call
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*args)
        return _new(DTensor, call.serve(given, _NO_NAMES), call.spec, requires_grad=False)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        ctx.kept, ctx.mesh, ctx.digests = ctx.call.kept, ctx.call.mesh, ()
        return _Node.backward(ctx, *cotangents)


def _called(operator: BaseOperator, args: Sequence[Any], mesh: Any, known: Mapping[str, torch.Tensor]) -> Any:
    placed = [placed_on(arg, mesh) for arg in args]
    result = serve_sharded(operator, placed, known) if known else NotImplemented
    return operator(*placed) if result is NotImplemented else result


def placed_on(value: Any, mesh: Any) -> Any:
    """A plain tensor with dimensions that all processes have, as a DTensor; other values as they are."""
    if isinstance(value, torch.Tensor) and not isinstance(value, DTensor) and value.ndim:
        return DTensor.from_local(value, mesh, [Replicate()] * mesh.ndim, run_check=False)
    return value


_apply: Any = super(Function, _Node).apply
_apply_again: Any = super(Function, _Again).apply
