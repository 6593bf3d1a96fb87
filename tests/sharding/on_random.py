"""Random numbers on DTensors, on two processes: those that PyTorch's own operations on DTensors draw."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import opwright
from tests.sharding import functions

Faults = list[str]


def judge(count: int) -> Faults:
    """Results, gradients and the generator afterwards, with the same seeds and with one for each process."""
    mesh = init_device_mesh("cpu", (count,))
    faults: Faults = []
    for name in ("spread_random", "spread_noise"):
        function = getattr(functions, name)
        operator = opwright.operator(function)
        for placement in (Shard(0), Shard(1), Replicate()):
            for seed in (3, 3 + dist.get_rank()):
                runs = [_run(call, placement, seed, mesh) for call in (operator, function)]
                where = f"{name} on {placement}, seed {seed}"
                faults += [
                    f"{where}: other {what}" for what, *two in zip(_WHAT, *runs, strict=True) if not torch.equal(*two)
                ]
                made, gradient, x, _ = runs[0]
                if name == "spread_random" and not torch.equal(gradient * x, made):
                    faults.append(f"{where}: the gradient is of other numbers than the result")
    return faults


_WHAT = ("results", "gradients", "arguments", "state of the generator")


def _run(call: Any, placement: Any, seed: int, mesh: Any) -> list[torch.Tensor]:
    torch.manual_seed(0)
    x = distribute_tensor(torch.randn(5, 64), mesh, [placement]).requires_grad_()
    torch.manual_seed(seed)
    made = call(x)
    (gradient,) = torch.autograd.grad(made.sum(), x)
    locals_ = [one.redistribute(placements=[placement]).to_local().detach() for one in (made, gradient, x)]
    return [*locals_, torch.get_rng_state()]
