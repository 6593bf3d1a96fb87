"""Plans for DTensors whose parts are no runs of their wholes: `_StridedShard`, where FSDP2 cuts what is cut already.

A rule from Shard to Shard says that an axis runs through: what is computed at one place of it needs no other place. So
it holds for any parts of the axis, if all tensors that have the axis have the same parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from opwright.operators.base import BaseOperator
from opwright.sharding.known import rules_for, specs_of
from opwright.sharding.plan import Plan, placements_of, whole_results
from opwright.sharding.rule import Rule
from opwright.tracing.torch_hooks.spread import cut, cuts_of, spec_for, spec_of


def plan_as_placed(operator: BaseOperator, args: Sequence[Any], mesh: Any) -> Plan | None:
    """The plan for flat arguments that stay where they are; None if no rules say that they can.

    Args:
        operator: The operator.
        args: Flat arguments: DTensors, tensors without dimensions and constants.
        mesh: The mesh of the DTensors.
    """
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    spread = [tensor for tensor in tensors if hasattr(tensor, "_spec")]
    if mesh.get_coordinate() is None or any(
        spec_for(mesh, spec_of(t).placements, t).shard_order != spec_of(t).shard_order for t in spread
    ):
        return None
    derived = rules_for(operator, specs_of(operator, args, [tuple(tensor.shape) for tensor in tensors]))
    returned = whole_results(operator, args)
    given = [placements_of(tensor, mesh.ndim) for tensor in tensors]
    made: list[tuple[Placement, ...]] = []
    for level in range(mesh.ndim):
        outputs = _outputs(derived.rules, [placements[level] for placements in given], len(returned.tensors))
        if outputs is None:
            return None
        made.append(outputs)
    placed = list(zip(*made, strict=True))
    pairs = [*zip(tensors, given, strict=True), *zip(returned.tensors, placed, strict=True)]
    if not placed or not all(_are_even(tuple(tensor.shape), placements, mesh) for tensor, placements in pairs):
        return None
    count = len(returned.tensors)
    targets = tuple(spec_of(arg).placements if hasattr(arg, "_spec") else None for arg in args)
    specs = tuple(spec_for(mesh, to, one) for one, to in zip(returned.tensors, placed, strict=True))
    return Plan(targets, (), specs, (1.0,) * count, (), returned, False, None, True, returned.is_bare)


def _outputs(rules: Sequence[Rule], given: Sequence[Placement], count: int) -> tuple[Placement, ...] | None:
    """The placements of the results in one dimension of the mesh; None if no rule says that the axis runs through."""
    if all(isinstance(placement, Replicate) for placement in given):
        return (Replicate(),) * count
    cuts = {cuts_of(placement) for placement in given} - {0}
    wanted = tuple(map(_as_shard, given))
    for rule in rules:
        runs = all(isinstance(placement, Shard) for placement in rule.outputs) and not any(rule.powers)
        if rule.inputs == wanted and runs and not rule.even and rule.split is None and len(cuts) == 1:
            return tuple(cut(made.dim, *cuts) for made in rule.outputs if isinstance(made, Shard))
    return None


def _as_shard(placement: Any) -> Placement:
    return Shard(placement.dim) if cuts_of(placement) else placement


def _are_even(shape: tuple[int, ...], placements: Sequence[Placement], mesh: Any) -> bool:
    counts = [1] * len(shape)
    for level, placement in enumerate(placements):
        shard = _as_shard(placement)
        if isinstance(shard, Shard):
            counts[shard.dim] *= mesh.size(level)
    return all(size % count == 0 for size, count in zip(shape, counts, strict=True))
