"""Plans: what a call on tensors of certain placements does, decided from what every process knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import Shard
from torch.distributed.tensor.placement_types import Placement

from opwright.binding.returned import Returned
from opwright.operators.base import BaseOperator
from opwright.sharding.choose import Choice, Given, choose
from opwright.sharding.known import rules_for, specs_of
from opwright.sharding.parts import neutral, part_size
from opwright.sharding.rule import REPLICATE, Rule
from opwright.sharding.split.running import Running, running
from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.torch_hooks.spread import spec_for, spec_of


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call does.

    Attributes:
        targets: For each flat argument, the placements that it is given; None for what is no DTensor.
        moves: Positions of the arguments that are placed otherwise first.
        specs: For each result, the description of the whole.
        factors: For each result, what it is multiplied by in this process.
        fills: For each result, what this process adds, if it has no elements; empty if it has.
        returned: The structure of the result.
        scales: Whether a factor is not one.
        stages: What runs instead of the operator if the rule splits it; None if it does not.
        is_simple: Whether the operator runs on what is there, and nothing else is done.
        is_bare: Whether the result is one tensor.
    """

    targets: tuple[tuple[Placement, ...] | None, ...]
    moves: tuple[int, ...]
    specs: tuple[Any, ...]
    factors: tuple[float, ...]
    fills: tuple[torch.Tensor, ...]
    returned: Returned
    scales: bool
    stages: Running | None
    is_simple: bool
    is_bare: bool


def plan_for(operator: BaseOperator, args: Sequence[Any], mesh: Any, known: Mapping[str, torch.Tensor]) -> Plan | None:
    """The plan for flat arguments; None if no rule is known.

    Args:
        operator: The operator.
        args: Flat arguments: DTensors, tensors without dimensions and constants.
        mesh: The mesh of the DTensors.
        known: Reductions of other calls on the same arguments, by their digests.
    """
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    specs = specs_of(operator, args, [tuple(arg.shape) for arg in tensors])
    derived = rules_for(operator, specs)
    coordinate = mesh.get_coordinate()
    if not derived.rules or coordinate is None:
        return None
    returned = whole_results(operator, args)
    if len(returned.tensors) != len(derived.rules[0].outputs):
        return None
    given = [Given(tuple(t.shape), t.numel() * t.element_size(), placements_of(t, mesh.ndim)) for t in tensors]
    made = [one.numel() * one.element_size() for one in returned.tensors]
    whole = {f"{s.name}_size_{d}": n for s in specs if isinstance(s, TensorSpec) for d, n in enumerate(s.sizes)}
    rules = [replace(rule, split=rule.split.knowing(known)) if rule.split else rule for rule in derived.rules]
    between = [rule.split.bytes(whole) if rule.split else 0 for rule in rules]
    choice = choose(rules, given, made, tuple(mesh.shape), between)
    return None if choice is None else _made(operator, args, mesh, choice, returned, known)


def placements_of(tensor: torch.Tensor, levels: int) -> tuple[Placement, ...]:
    """Those of a DTensor; every process has all of other tensors."""
    return spec_of(tensor).placements if hasattr(tensor, "_spec") else (REPLICATE,) * levels


def _made(
    operator: BaseOperator,
    args: Sequence[Any],
    mesh: Any,
    choice: Choice,
    returned: Returned,
    known: Mapping[str, torch.Tensor],
) -> Plan:
    coordinate = mesh.get_coordinate()
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    counted = iter(range(len(tensors)))
    places = [next(counted) if isinstance(arg, torch.Tensor) else None for arg in args]
    targets = tuple(
        None if place is None or not hasattr(arg, "_spec") else choice.inputs(place)
        for arg, place in zip(args, places, strict=True)
    )
    moves = tuple(p for p, to in enumerate(targets) if to is not None and spec_of(args[p]).placements != to)
    outputs = [choice.outputs(place) for place in range(len(returned.tensors))]
    shapes = [_own(tuple(t.shape), to, mesh, coordinate) for t, to in zip(returned.tensors, outputs, strict=True)]
    ratios, is_empty = _ratios(choice.rules, tensors, mesh, coordinate)
    device = torch.device(mesh.device_type)
    fills = tuple(
        neutral(shape, one.dtype, next((o for o in to if o.is_partial()), REPLICATE), device)
        for shape, one, to in zip(shapes, returned.tensors, outputs, strict=True)
        if is_empty
    )
    factors = tuple(
        _factor([rule.powers[place] for rule in choice.rules], ratios) for place in range(len(returned.tensors))
    )
    specs = tuple(spec_for(mesh, to, one) for one, to in zip(returned.tensors, outputs, strict=True))
    stages = next(
        (
            running(operator, rule.split, _within(tensors, choice, mesh, coordinate, level), mesh, level, share, known)
            for level, (rule, share) in enumerate(zip(choice.rules, ratios, strict=True))
            if rule.split is not None
        ),
        None,
    )
    scales = any(factor != 1 for factor in factors)
    is_simple = not (moves or fills or scales or stages)
    return Plan(targets, moves, specs, factors, fills, returned, scales, stages, is_simple, returned.is_bare)


def _within(
    tensors: Sequence[torch.Tensor], choice: Choice, mesh: Any, coordinate: Sequence[int], level: int
) -> list[torch.Tensor]:
    """What the processes along one dimension of the mesh have together, as tensors on no device."""
    wholes = []
    for position, tensor in enumerate(tensors):
        placements = list(choice.inputs(position))
        placements[level] = REPLICATE
        shape = _own(tuple(tensor.shape), placements, mesh, coordinate)
        wholes.append(torch.empty(shape, dtype=tensor.dtype, device="meta"))
    return wholes


def _own(
    shape: tuple[int, ...], placements: Sequence[Placement], mesh: Any, coordinate: Sequence[int]
) -> tuple[int, ...]:
    own = list(shape)
    for level, placement in enumerate(placements):
        if isinstance(placement, Shard):
            own[placement.dim] = part_size(own[placement.dim], mesh.size(level), coordinate[level])
    return tuple(own)


def _ratios(
    rules: Sequence[Rule], tensors: Sequence[torch.Tensor], mesh: Any, coordinate: Sequence[int]
) -> tuple[list[float], bool]:
    """For each dimension of the mesh, the share of the axis that this process has; and whether it has nothing."""
    sizes = [list(tensor.shape) for tensor in tensors]
    ratios = []
    for level, rule in enumerate(rules):
        ratio = 1.0
        for position, placement in enumerate(rule.inputs):
            if isinstance(placement, Shard):
                whole = sizes[position][placement.dim]
                own = part_size(whole, mesh.size(level), coordinate[level])
                sizes[position][placement.dim] = own
                ratio = own / whole if whole else 0.0
        ratios.append(ratio)
    return ratios, any(ratio == 0 for ratio in ratios)


def _factor(powers: Sequence[int], ratios: Sequence[float]) -> float:
    factor = 1.0
    for power, ratio in zip(powers, ratios, strict=True):
        factor *= ratio**power if power and ratio else 1.0
    return factor


def whole_results(operator: BaseOperator, args: Sequence[Any]) -> Returned:
    """What the call returns as a whole: its structure, with tensors that have sizes and no elements."""
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        whole = [
            torch.empty_strided(tuple(arg.shape), arg.stride(), dtype=arg.dtype)
            if isinstance(arg, torch.Tensor)
            else arg
            for arg in args
        ]
        return Returned(operator.flat_reference(*whole))
