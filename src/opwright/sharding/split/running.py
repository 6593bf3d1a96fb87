"""Run an operator that is cut at reductions: its stages are operators, with an all-reduce after each but the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import Partial

from opwright.operators.base import BaseOperator
from opwright.sharding.parts import neutral
from opwright.sharding.split.stages import Split, Stage
from opwright.tracing.torch_hooks.spread import uncounted

_OPERATIONS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}


@dataclass(frozen=True, slots=True)
class _Before:
    """A stage whose values are reduced.

    Attributes:
        operator: Computes them.
        functions: How each is reduced.
        fills: What this process adds if it has no elements; empty if it has.
        packs: The positions of the values that are reduced together, in one buffer.
    """

    operator: BaseOperator
    functions: tuple[str, ...]
    fills: tuple[torch.Tensor, ...]
    packs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Running:
    """A call in stages.

    Attributes:
        before: The stages whose values are reduced.
        last: Computes the results.
        places: For each result, its position among them.
        group: The processes over which values are reduced.
        share: The share of the axis that this process has.
        is_empty: Whether it has nothing.
        given: The digests of reductions that are known before a call.
        digests: Those of all reductions, in the order in which stages take them.
    """

    before: tuple[_Before, ...]
    last: BaseOperator
    places: tuple[int, ...]
    group: Any
    share: torch.Tensor
    is_empty: bool
    given: tuple[str, ...]
    digests: tuple[str, ...]

    def computed(self, args: Sequence[Any], known: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """The results of this process; none if it has no elements.

        Args:
            args: What it has of the arguments.
            known: Reductions by their digests; those of this call are added.
        """
        given = [arg for arg in args if isinstance(arg, torch.Tensor)]
        reduced = [known[digest] for digest in self.given]
        for stage in self.before:
            with uncounted():
                made = [one.clone() for one in stage.fills] or list(stage.operator(*given, *reduced, self.share))
            for pack in stage.packs:
                self._reduce(made, pack, stage.functions[pack[0]])
            reduced += made
        known.update(zip(self.digests, reduced, strict=True))
        if self.is_empty:
            return []
        with uncounted():
            results = self.last(*given, *reduced, self.share)
        return [results[place] for place in self.places]

    def _reduce(self, values: list[torch.Tensor], pack: Sequence[int], function: str) -> None:
        """Reduce some of the values over the processes, in one collective."""
        if len(pack) == 1:
            values[pack[0]] = values[pack[0]].contiguous()
            dist.all_reduce(values[pack[0]], _OPERATIONS[function], self.group)
            return
        together = torch.cat([values[place].reshape(-1) for place in pack])
        dist.all_reduce(together, _OPERATIONS[function], self.group)
        for place, piece in zip(pack, together.split([values[place].numel() for place in pack]), strict=True):
            values[place] = piece.view(values[place].shape)


def running(
    operator: BaseOperator,
    split: Split,
    wholes: Sequence[torch.Tensor],
    mesh: Any,
    level: int,
    share: float,
    known: Mapping[str, torch.Tensor],
) -> Running:
    """Prepare a call.

    Args:
        operator: The operator that is split.
        split: Its stages.
        wholes: For each of its tensors, what the processes of the group have together, as a tensor of no device.
        mesh: The mesh.
        level: The dimension of it along which the axis is spread.
        share: The share of the axis that this process has.
        known: Reductions that are known, by their digests.
    """
    before = []
    device = torch.device(mesh.device_type)
    made = _reductions(split, wholes, known)
    for stage, values in zip(split.before, made, strict=True):
        fills = () if share else tuple(
            neutral(tuple(value.shape), value.dtype, Partial(function), device)
            for value, function in zip(values, stage.functions, strict=True)
        )  # fmt: skip
        kinds: dict[Any, list[int]] = {}
        for place, (value, function) in enumerate(zip(values, stage.functions, strict=True)):
            kinds.setdefault((function, value.dtype), []).append(place)
        packs = tuple(map(tuple, kinds.values()))
        before.append(_Before(_part(operator, stage.stage), stage.functions, fills, packs))
    own = torch.tensor(share, dtype=torch.float64, device=device)
    last = _part(operator, split.last)
    return Running(tuple(before), last, split.places, mesh.get_group(level), own, not share, split.given, split.digests)


def _reductions(
    split: Split, wholes: Sequence[torch.Tensor], known: Mapping[str, torch.Tensor]
) -> list[tuple[torch.Tensor, ...]]:
    """What each stage computes, as tensors without elements."""
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        given = [torch.empty(tuple(one.shape), dtype=one.dtype) for one in wholes]
        share = torch.empty((), dtype=torch.float64)
        reduced = [torch.empty(tuple(known[digest].shape), dtype=known[digest].dtype) for digest in split.given]
        made = []
        for stage in split.before:
            made.append(stage.stage(*given, *reduced, share))
            reduced += made[-1]
    return made


def _part(operator: BaseOperator, stage: Stage) -> BaseOperator:
    if stage.operator is None:

        def function(
            *tensors: torch.Tensor,
        ) -> tuple[torch.Tensor, ...]:  # operators take over the attributes of objects
            return stage(*tensors)

        stage.operator = operator.part(function, stage.name, stage.parameters, stage.key)
    made: BaseOperator = stage.operator
    return made
