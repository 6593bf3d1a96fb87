"""What a call on DTensors costs over the call on local tensors, beside PyTorch's built-in operations.

    python benchmarks/sharding.py

One process, a mesh of one, small tensors: nothing is sent, and kernels take next to no time. Rounds are interleaved;
the fastest of each call is told, since other processes of a machine only make rounds slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn import functional

import opwright

ROUNDS, CALLS = 40, 100


@opwright.operator(name="bench::spread_gate")
def spread_gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A gate."""
    return functional.silu(x) * y


def seconds(call: Callable[[], object]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def main() -> None:
    """Measure, and print a table."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    x, y = torch.randn(4, 8), torch.randn(4, 8)
    dx, dy = (distribute_tensor(one, mesh, [Shard(0)]) for one in (x, y))
    gx, gy, gdx, gdy = (one.detach().clone().requires_grad_() for one in (x, y, dx, dy))
    calls: dict[str, Callable[[], object]] = {
        "operator, local": lambda: spread_gate(x, y),
        "operator, DTensor": lambda: spread_gate(dx, dy),
        "torch.mul, local": lambda: torch.mul(x, y),
        "torch.mul, DTensor": lambda: torch.mul(dx, dy),
        "function, DTensor": lambda: spread_gate.reference(dx, dy),
        "operator, local, recorded": lambda: spread_gate(gx, gy),
        "operator, DTensor, recorded": lambda: spread_gate(gdx, gdy),
        "torch.mul, local, recorded": lambda: torch.mul(gx, gy),
        "torch.mul, DTensor, recorded": lambda: torch.mul(gdx, gdy),
    }
    for call in calls.values():
        call()
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(seconds(call))
    found = {name: 1e6 * min(each) for name, each in times.items()}
    for name, microseconds in found.items():
        print(f"{name:32} {microseconds:8.1f} µs")
    for mode in ("", ", recorded"):
        ours = found[f"operator, DTensor{mode}"] - found[f"operator, local{mode}"]
        theirs = found[f"torch.mul, DTensor{mode}"] - found[f"torch.mul, local{mode}"]
        print(f"over the local call{mode}: {ours:.1f} µs, torch.mul {theirs:.1f} µs, ratio {ours / theirs:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
