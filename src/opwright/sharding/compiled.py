"""Calls with DTensors under a compiler: what it records is the operator on what this process has, by the same plans.

PyTorch's `register_sharding` would let its dispatcher do that, but cannot tell means over uneven parts, parts without
elements, or other rules for each process. So the placing of arguments is recorded around the operator. Rules that reduce
between stages are left out: the stages are operators of their own, which compilers know nothing of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Replicate

from opwright.binding.autograd.recorded_whole import call_whole
from opwright.operators.base import BaseOperator
from opwright.sharding.parts import neutral
from opwright.sharding.plan import Plan, plan_for
from opwright.sharding.rule import REPLICATE
from opwright.sharding.serving import mesh_of, placed_on
from opwright.sharding.strided import plan_as_placed
from opwright.tracing.torch_hooks.isolation import in_fresh_thread
from opwright.tracing.torch_hooks.spread import is_usual, local_of, spec_for, spec_of, spread


def record_sharded(operator: BaseOperator, call: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Serve a call with DTensors that a compiler records.

    Args:
        operator: The operator.
        call: Calls it at torch's dispatcher.
        args: Flat arguments.

    Returns:
        The result; NotImplemented for a process outside of the mesh.

    Raises:
        MixedPlacement: If there are DTensors of two meshes, or DTensors and plain tensors.
    """
    mesh, args = mesh_of(operator, args)
    if mesh.get_coordinate() is None:
        return NotImplemented
    plan = in_fresh_thread(lambda: _planned(operator, [_described(arg) for arg in args], mesh))

    def run(*given: Any) -> Any:
        with torch.no_grad():
            return _gathered(call, given, mesh) if plan is None else _run(call, plan, given)

    return call_whole(run, lambda *which: _Gradients(operator.transforms.backward(*which), mesh), args)


def _described(arg: Any) -> Any:
    """A DTensor of the same description, whose sizes are numbers, with nothing in it."""
    if not isinstance(arg, DTensor):
        return arg
    spec = spec_of(arg)
    sizes, strides = ([int(one) for one in each] for each in (arg.shape, arg.stride()))
    like = torch.empty_strided(sizes, strides, dtype=arg.dtype, device="meta")
    return spread(torch.empty(0, dtype=arg.dtype, device="meta"), spec_for(spec.mesh, spec.placements, like))


def _planned(operator: BaseOperator, args: Sequence[Any], mesh: Any) -> Plan | None:
    if all(is_usual(spec_of(arg)) for arg in args if isinstance(arg, DTensor)):
        return plan_for(operator, args, mesh, {}, splits=False)
    return plan_as_placed(operator, args, mesh)


def _run(call: Callable[..., Any], plan: Plan, args: Sequence[Any]) -> Any:
    """The operator on what this process has, by a plan."""
    placed = [
        local_of(arg.redistribute(placements=to)) if to is not None else arg
        for arg, to in zip(args, plan.targets, strict=True)
    ]
    made = _filled(plan) if plan.fills else _scaled(plan, _tensors(call(*placed)))
    return _as_schemas_return([spread(local, spec) for local, spec in zip(made, plan.specs, strict=True)])


def _filled(plan: Plan) -> list[torch.Tensor]:
    """What a process without elements adds, made anew: tensors from outside are not recorded."""
    partial = [next((one for one in spec.placements if one.is_partial()), REPLICATE) for spec in plan.specs]
    return [neutral(tuple(f.shape), f.dtype, p, f.device) for f, p in zip(plan.fills, partial, strict=True)]


def _scaled(plan: Plan, made: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [one if factor == 1 else one * factor for one, factor in zip(made, plan.factors, strict=True)]


def _gathered(call: Callable[..., Any], args: Sequence[Any], mesh: Any) -> Any:
    """The operator on whole arguments, where no rule is known."""
    whole = [Replicate()] * mesh.ndim
    made = call(*[local_of(arg.redistribute(placements=whole)) if isinstance(arg, DTensor) else arg for arg in args])
    return _as_schemas_return([DTensor.from_local(one, mesh, whole, run_check=False) for one in _tensors(made)])


def _tensors(made: Any) -> Sequence[torch.Tensor]:
    return [made] if isinstance(made, torch.Tensor) else made


def _as_schemas_return(made: Sequence[torch.Tensor]) -> Any:
    return made[0] if len(made) == 1 else tuple(made)


@dataclass(frozen=True, slots=True)
class _Gradients:
    """The operator of the gradients of a call; cotangents that are missing come as plain zeros."""

    operator: BaseOperator
    mesh: Any
    overload: None = None

    def __call__(self, *args: Any) -> Any:
        return (self.operator.overload or self.operator)(*[placed_on(arg, self.mesh) for arg in args])
