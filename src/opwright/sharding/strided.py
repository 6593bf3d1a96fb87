"""Plans for DTensors whose parts are no runs of their wholes: `_StridedShard`, where FSDP2 cuts what is cut already.

A rule from Shard to Shard says that an axis runs through: what is computed at one place of it needs no other place. One
from Shard to Partial says that its places are added up. So both hold for any parts of the axis, if all tensors that
have the axis have the same parts: they have, where they are placed alike and placements say which parts these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from opwright.operators.base import BaseOperator
from opwright.sharding.known import rules_for, specs_of
from opwright.sharding.parts import neutral
from opwright.sharding.plan import Plan, placements_of, whole_results
from opwright.sharding.rule import REPLICATE, Rule
from opwright.sharding.runs import Cut, are_told, runs_of
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
    if not placed or any(len({one for one in to if one.is_partial()}) > 1 for to in placed):
        return None
    if not all(
        _is_told(one, to, mesh) for one, to in zip((*tensors, *returned.tensors), (*given, *placed), strict=True)
    ):
        return None
    count = len(returned.tensors)
    is_empty = any(_is_empty(one, to, mesh) for one, to in zip(tensors, given, strict=True))
    fills = _fills(returned.tensors, placed, mesh) if is_empty else ()
    targets = tuple(spec_of(arg).placements if hasattr(arg, "_spec") else None for arg in args)
    specs = tuple(spec_for(mesh, to, one) for one, to in zip(returned.tensors, placed, strict=True))
    return Plan(targets, (), specs, (1.0,) * count, fills, returned, False, None, not fills, returned.is_bare)


def _outputs(rules: Sequence[Rule], given: Sequence[Placement], count: int) -> tuple[Placement, ...] | None:
    """The placements of the results in one dimension of the mesh; None if no rule holds for all parts of the axis."""
    if all(isinstance(placement, Replicate) for placement in given):
        return (Replicate(),) * count
    cuts = {cuts_of(placement) for placement in given} - {0}
    wanted = tuple(map(_as_shard, given))
    for rule in rules:
        holds = all(isinstance(made, Shard | Partial) for made in rule.outputs) and not any(rule.powers)
        if rule.inputs == wanted and holds and not rule.even and rule.split is None and len(cuts) == 1:
            return tuple(cut(made.dim, *cuts) if isinstance(made, Shard) else made for made in rule.outputs)
    return None


def _as_shard(placement: Any) -> Placement:
    return Shard(placement.dim) if cuts_of(placement) else placement


def _levels(placements: Sequence[Placement], dim: int) -> list[int]:
    """The dimensions of the mesh that cut a dimension of a tensor."""
    return [level for level, placement in enumerate(placements) if _as_shard(placement) == Shard(dim)]


def _cuts(placements: Sequence[Placement], dim: int, mesh: Any) -> list[Cut]:
    return [Cut(cuts_of(placements[level]), mesh.size(level)) for level in _levels(placements, dim)]


def _is_told(tensor: torch.Tensor, placements: Sequence[Placement], mesh: Any) -> bool:
    return all(are_told(size, _cuts(placements, dim, mesh)) for dim, size in enumerate(tensor.shape))


def _own(tensor: torch.Tensor, placements: Sequence[Placement], mesh: Any) -> tuple[int, ...]:
    """The sizes of what this process has."""
    place = mesh.get_coordinate()
    runs = [
        runs_of(size, _cuts(placements, dim, mesh), [place[level] for level in _levels(placements, dim)])
        for dim, size in enumerate(tensor.shape)
    ]
    return tuple(sum(map(len, each)) for each in runs)


def _is_empty(tensor: torch.Tensor, placements: Sequence[Placement], mesh: Any) -> bool:
    """Whether this process has nothing of a tensor that has elements."""
    return 0 in _own(tensor, placements, mesh) and 0 not in tensor.shape


def _fills(
    tensors: Sequence[torch.Tensor], placed: Sequence[Sequence[Placement]], mesh: Any
) -> tuple[torch.Tensor, ...]:
    """What a process without elements has of results."""
    device = torch.device(mesh.device_type)
    adds = [next((one for one in to if one.is_partial()), REPLICATE) for to in placed]
    return tuple(
        neutral(_own(one, to, mesh), one.dtype, add, device) for one, to, add in zip(tensors, placed, adds, strict=True)
    )
