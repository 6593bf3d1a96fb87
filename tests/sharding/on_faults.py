"""Wrong calls and lost processes on a mesh of two: each ends in a sentence, in time."""

from __future__ import annotations

import os
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import opwright
from opwright.errors import MixedPlacement
from tests.sharding import functions

_SECONDS = 60


def judge_lost(count: int, how: str) -> list[str]:
    """A process ends, or stops, in the middle of a step; the other has an error within the time limit of the group."""
    mesh = init_device_mesh("cpu", (count,))
    operator = opwright.operator(functions.spread_norm)
    torch.manual_seed(0)
    x, w = distribute_tensor(torch.randn(5, 40), mesh, [Shard(1)]), distribute_tensor(torch.randn(40), mesh, [Shard(0)])
    operator(x, w)
    dist.barrier()
    if dist.get_rank() == 1:
        if how == "stops":
            time.sleep(_SECONDS + 5)
        os._exit(1)
    start = time.monotonic()
    try:
        operator(x, w)
    except RuntimeError as error:
        took = time.monotonic() - start
        told = str(error)
        right = took < _SECONDS and ("Connection closed" in told or "Timed out" in told or "reset by peer" in told)
        return [] if right else [f"after {took:.0f} s: {error}"]
    return ["the sum of two processes was computed by one"]


def _told(call: Any, kind: type[Exception], *words: str) -> list[str]:
    try:
        made = call()
    except kind as error:
        lacking = [word for word in words if word not in str(error)]
        return [f"{error} does not say {lacking}"] if lacking else []
    return [f"taken, and gave {made}"]


def judge_meshes(count: int) -> list[str]:
    """Tensors of two meshes, also of two devices, are refused; a process outside of a mesh computes nothing."""
    mesh, grid = init_device_mesh("cpu", (count,)), init_device_mesh("cpu", (count, 1))
    meta = DeviceMesh("meta", list(range(count)), _init_backend=False)
    operator = opwright.operator(functions.spread_gate)
    here = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    there = distribute_tensor(torch.ones(4, 4), grid, [Shard(0), Replicate()])
    nowhere = DTensor.from_local(torch.ones(2, 4, device="meta"), meta, [Shard(0)], run_check=False)
    faults = _told(lambda: operator(here, there), MixedPlacement, "DTensors of two meshes", "hint: ")
    faults += _told(lambda: operator(here, nowhere), RuntimeError, "cpu", "meta")  # PyTorch's own
    alone = DeviceMesh("cpu", [0])
    part = DTensor.from_local(torch.ones(3, 4), alone, [Shard(0)], run_check=False)
    made = operator(part, part)
    expected = functions.spread_gate(torch.ones(3, 4), torch.ones(3, 4))
    if dist.get_rank() == 0 and not torch.allclose(made.to_local(), expected):
        faults.append("another result on a mesh of one process")
    if dist.get_rank() == 1 and made.to_local().numel():
        faults.append("a process outside of the mesh has elements")
    return faults
