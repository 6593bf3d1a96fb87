"""The short way of a call on DTensors: calls that were planned before, and send nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import ref

import torch
from torch.distributed.tensor import DTensor

from opwright.binding.environment import is_quiet
from opwright.binding.variants.kinds import constant_key
from opwright.operators.base import BaseOperator
from opwright.sharding.plan import Plan

_is_grad_enabled = torch.is_grad_enabled
_new = DTensor.__new__
_MOST_FORGOTTEN = 64
_CONSTANTS = (bool, int, float, str, type(None))

Record = Callable[[BaseOperator, Plan, Any], Callable[..., Any]]


def short_way(
    operator: BaseOperator, plans: Mapping[Any, Plan | None], record: Record
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """What serves calls by plans; NotImplemented for calls that need more.

    Args:
        operator: The operator; it is not kept alive.
        plans: Its plans, by what `serving` knows them by.
        record: `(operator, plan, mesh) -> what records calls by the plan for autograd`.
    """
    own, serve, outside_now = ref(operator), operator.server.serve, operator.outside_now

    recording: dict[int, tuple[Plan, Callable[..., Any]]] = {}

    def served(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs or not is_quiet():
            return NotImplemented
        key, given, recorded, mesh = [outside_now()], [], False, None
        for arg in args:
            if type(arg) is DTensor:
                spec = arg._spec
                local = arg._local_tensor
                if type(local) is not torch.Tensor:  # it has not arrived
                    return NotImplemented
                key.append(spec)
                given.append(local)
                recorded = recorded or arg.requires_grad
                mesh = spec.mesh
            elif type(arg) in _CONSTANTS:
                key.append(constant_key(arg))
                given.append(arg)
            else:
                return NotImplemented
        plan = plans.get(tuple(key))
        if plan is None or not plan.is_simple:
            return NotImplemented
        if recorded and _is_grad_enabled():
            known = recording.get(id(plan))
            if known is None or known[0] is not plan:
                operator = own()
                if operator is None:
                    return NotImplemented
                if len(recording) >= len(plans) + _MOST_FORGOTTEN:
                    recording.clear()
                known = recording[id(plan)] = plan, record(operator, plan, mesh)
            return known[1](*args)
        made = simply(plan, serve, given)
        return made[0] if plan.is_bare else plan.returned.rebuilt(made)

    return served


def simply(plan: Plan, serve: Callable[..., Any], given: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a simple plan.

    Args:
        plan: The plan.
        serve: Serves calls of the operator.
        given: The arguments, DTensors as what this process has of them.
    """
    made = serve(tuple(given), {})
    if plan.is_bare:
        return (_new(DTensor, made, plan.specs[0], requires_grad=False),)
    tensors = plan.returned.like(made)
    return tuple([_new(DTensor, one, spec, requires_grad=False) for one, spec in zip(tensors, plan.specs, strict=True)])
