"""What the processes of a mesh of two judge by day."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

import opwright
from opwright.errors import MixedPlacement
from tests.sharding import functions
from tests.sharding.judged import judge as judge_call

_R, _P = Replicate(), Partial()
CASES = (
    ("spread_mean", [(5, 6), (5, 6)], [(Shard(0), Shard(0)), (_P, _R), (Shard(1), _R)]),
    ("spread_norm", [(5, 6), (6,)], [(Shard(0), _R), (_R, Shard(0)), (_R, _R)]),
    ("spread_largest", [(1, 6)], [(Shard(0),), (Shard(1),)]),
)


def judge_calls(mesh: Any) -> list[str]:
    """Results and gradients on placements that are even, uneven and empty."""
    faults = []
    for name, shapes, placements in CASES:
        function = getattr(functions, name)
        operator = opwright.operator(function)
        torch.manual_seed(0)
        wholes = [torch.randn(shape) for shape in shapes]
        for given in placements:
            found = judge_call(operator, function, wholes, mesh, [(one,) for one in given], orders=1)
            faults += [f"{name} on {given}: {found.fault}"] if found.fault else []
    return faults


def judge_collectives(mesh: Any) -> list[str]:
    """A row operator spread by rows sends nothing, and runs kernels while collectives are counted."""
    operator = opwright.operator(functions.spread_norm)
    x = distribute_tensor(torch.randn(5, 6), mesh, [Shard(0)])
    w = distribute_tensor(torch.randn(6), mesh, [Replicate()])
    with CommDebugMode() as counted:
        operator(x, w)
    rung = operator.last_rung
    return [] if counted.get_total_counts() == 0 and rung == "cpp" else [f"{counted.get_comm_counts()}, {rung}"]


def judge_mixture(mesh: Any) -> list[str]:
    """A plain tensor beside a DTensor ends in a sentence, in every process."""
    operator = opwright.operator(functions.spread_norm)
    x = DTensor.from_local(torch.randn(5, 6), mesh, [Shard(0)])
    try:
        operator(x, torch.randn(6))
    except MixedPlacement as error:
        return [] if "a plain tensor of shape [6]" in str(error) and "hint: " in str(error) else [str(error)]
    return ["a plain tensor was taken"]


def judge(count: int) -> list[str]:
    """All of it."""
    mesh = init_device_mesh("cpu", (count,))
    return [*judge_calls(mesh), *judge_collectives(mesh), *judge_mixture(mesh)]
