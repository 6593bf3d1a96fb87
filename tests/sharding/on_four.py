"""What the processes of a mesh of four judge at night: operators on all placements of their arguments."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard

import opwright
from tests.sharding import functions
from tests.sharding.judged import judge as judge_call

Shapes = Callable[[int], list[tuple[int, ...]]]

OPERATORS: dict[str, Shapes] = {
    "spread_sum": lambda n: [(n, 4), (n, 4)],
    "spread_gate": lambda n: [(n, 4), (n, 4)],
    "spread_softmax": lambda n: [(n, 4)],
    "spread_norm": lambda n: [(n, 4), (4,)],
    "spread_layer_norm": lambda n: [(n, 6), (6,), (6,)],
    "spread_mean": lambda n: [(n, 4), (n, 4)],
    "spread_largest": lambda n: [(n, 4)],
    "spread_columns": lambda n: [(n, 4)],
    "spread_linear": lambda n: [(2, n, 4), (5, 4)],
    "spread_lltm": lambda n: [(n, 12), (n, 4)],
    "spread_cross_entropy": lambda n: [(n, 5), (n,)],
    "spread_squared_error": lambda n: [(n, 4), (n, 4)],
    "spread_embedding": lambda n: [(n,), (5, 4)],
    "spread_rotary": lambda n: [(2, n, 8), (n, 4), (n, 4)],
    "spread_argmax": lambda n: [(n, 4)],
    "spread_cumulated": lambda n: [(n, 4)],
}
SIZES = {"even": 8, "uneven": 6, "empty": 3}


def wholes_of(name: str, size: int) -> list[torch.Tensor]:
    """The whole arguments, the same in all processes."""
    torch.manual_seed(0)
    shapes = OPERATORS[name](size)
    wholes = [torch.randn(shape) for shape in shapes]
    if name == "spread_cross_entropy":
        wholes[1] = torch.randint(0, 5, shapes[1])
    if name == "spread_embedding":
        wholes[0] = torch.randint(0, 5, shapes[0])
    return wholes


def placements_of(wholes: list[torch.Tensor]) -> Iterator[tuple[Any, ...]]:
    """All placements in one dimension of a mesh."""
    for whole in wholes:
        assert whole.ndim
    choices = [
        [Replicate(), *map(Shard, range(whole.ndim)), *([Partial()] if whole.is_floating_point() else [])]
        for whole in wholes
    ]
    yield from product(*choices)


@dataclass
class Swept:
    """What came of the calls of a sweep.

    Attributes:
        counts: How many calls were "right", "wrong" or "raised", and how many of all were served by "kernels".
        faults: What was wrong.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def sweep(mesh: Any, names: Sequence[str], sizes: Sequence[str], levels: int = 1) -> Swept:
    """Judge operators on placements, of two dimensions of a mesh on every seventh combination, up to second order."""
    swept = Swept()
    for name, which in product(names, sizes):
        function = getattr(functions, name)
        operator = opwright.operator(function)
        wholes = wholes_of(name, SIZES[which])
        chosen = islice(product(placements_of(wholes), repeat=levels), 0, None, 7 if levels > 1 else 1)
        for placements in (list(zip(*one, strict=True)) for one in chosen):
            try:
                found = judge_call(operator, function, wholes, mesh, placements)
                told, rung = found.fault and f"wrong, {found.fault}", found.rung
            except Exception as error:
                told, rung = f"raised, {type(error).__name__}: {error}".split("\n")[0], None
            every = [""] * mesh.size()
            dist.all_gather_object(every, told)
            fault = next((one for one in every if one), "")
            swept.counts[fault.partition(",")[0] or "right"] += 1
            swept.counts["kernels"] += rung not in (None, "composed")
            swept.faults += [f"{name}, {which}, {placements}: {fault}"] if fault else []
    return swept


def judge(count: int) -> list[str]:
    """All operators on all placements; at least nine calls in ten run kernels."""
    swept = sweep(init_device_mesh("cpu", (count,)), list(OPERATORS), list(SIZES))
    counts = swept.counts
    few = counts["kernels"] < 0.9 * (counts["right"] + counts["wrong"] + counts["raised"])
    return [*swept.faults, *([f"few calls run kernels: {counts}"] if few else [])]


def judge_grid(count: int) -> list[str]:
    """A sample on a mesh of two dimensions."""
    names = ["spread_norm", "spread_mean", "spread_largest", "spread_linear"]
    return sweep(init_device_mesh("cpu", (2, count // 2)), names, list(SIZES), levels=2).faults


def measure(count: int, names: Sequence[str], levels: int) -> list[str]:
    """The counts of a sweep, as JSON, and what was wrong."""
    shape = (count,) if levels == 1 else (2, count // 2)
    swept = sweep(init_device_mesh("cpu", shape), names, list(SIZES), levels)
    return [json.dumps(swept.counts), *swept.faults] if dist.get_rank() == 0 else []
