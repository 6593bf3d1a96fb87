"""What the processes of a mesh of four judge at night: operators on all placements of their arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
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


def sweep(mesh: Any, names: list[str], sizes: list[str], levels: int = 1) -> tuple[Counter[str], list[str]]:
    """Judge operators on placements; counts what came of them, and tells faults."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for name, which in product(names, sizes):
        function = getattr(functions, name)
        operator = opwright.operator(function)
        wholes = wholes_of(name, SIZES[which])
        for number, chosen in enumerate(product(placements_of(wholes), repeat=levels)):
            if levels > 1 and number % 7:
                continue
            placements = list(zip(*chosen, strict=True))
            try:
                found = judge_call(operator, function, wholes, mesh, placements, orders=2 if which == "even" else 1)
                fault, rung = found.fault, found.rung
            except Exception as error:
                fault, rung = f"{type(error).__name__}: {error}".split("\n")[0], None
            told = [""] * mesh.size()
            dist.all_gather_object(told, fault)
            fault = next((one for one in told if one), "")
            counts["wrong" if fault else "right"] += 1
            counts["kernels" if rung not in (None, "composed") else "composed"] += 1
            faults += [f"{name}, {which}, {placements}: {fault}"] if fault else []
    return counts, faults


def judge(count: int) -> list[str]:
    """All operators on all placements; at least nine calls in ten run kernels."""
    counts, faults = sweep(init_device_mesh("cpu", (count,)), list(OPERATORS), list(SIZES))
    few = counts["kernels"] < 0.9 * counts.total() / 2
    return [*faults, *([f"few calls run kernels: {counts}"] if few else [])]


def judge_grid(count: int) -> list[str]:
    """A sample on a mesh of two dimensions."""
    names = ["spread_norm", "spread_mean", "spread_largest", "spread_linear"]
    return sweep(init_device_mesh("cpu", (2, count // 2)), names, list(SIZES), levels=2)[1]
