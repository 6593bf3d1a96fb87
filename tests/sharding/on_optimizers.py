"""Optimizers on DTensors, on two processes: as on whole tensors in one process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.nn.utils import clip_grad_norm_

import opwright
from opwright.optim.serving import buckets, plan
from tests.sharding.on_block import batch, block, part
from tests.sharding.on_training import sharded

Faults = list[str]
Make = Callable[[Any], torch.optim.Optimizer]
_STEPS = 4
# Ours, and torch's; most of the norm of gradients.
FSDP: tuple[tuple[Make, Make, float | None], ...] = (
    (lambda p: opwright.optim.AdamW(p, lr=0.05), lambda p: torch.optim.AdamW(p, lr=0.05), None),
    (lambda p: opwright.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, 0.9), None),
    (lambda p: opwright.optim.SGD(p, lr=0.1, max_grad_norm=0.02), lambda p: torch.optim.SGD(p, 0.1), 0.02),
)
PLACEMENTS: tuple[tuple[tuple[int, ...], Any, Any], ...] = (  # of a parameter, and of its gradient
    ((5, 6), Shard(0), Shard(0)),
    ((6, 5), Shard(1), Shard(1)),
    ((4,), Replicate(), Partial()),
    ((1, 6), Shard(0), Shard(0)),
    ((3, 3), Replicate(), Replicate()),
)


def refuse(*_: Any) -> None:
    """In place of the definition."""
    raise AssertionError("the definition serves")


def by_kernels() -> Any:
    """Within it, only kernels may serve."""
    return mock.patch.multiple(buckets, run_composed=refuse), mock.patch.multiple(plan, run_composed=refuse)


def judge_fsdp(mesh: Any) -> Faults:
    """FSDP2's parameters are trained by kernels as by torch.optim, also by the norm of all gradients."""
    faults = []
    for number, (ours, theirs, most) in enumerate(FSDP):
        found = []
        for make, is_ours in ((ours, True), (theirs, False)):
            model = sharded(mesh) if is_ours else block()
            optimizer = make(model.parameters())
            x, y = map(part, batch()) if is_ours else batch()
            for _ in range(_STEPS):
                (model(x) - y).square().mean().backward()
                if is_ours:
                    first, second = by_kernels()
                    with first, second:
                        optimizer.step()
                else:
                    if most:
                        clip_grad_norm_(model.parameters(), most)
                    optimizer.step()
                optimizer.zero_grad()
            found.append([p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters()])
        if not all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(*found, strict=True)):
            faults.append(f"optimizer {number}: other parameters")
    return faults


def conditioned(gradient: torch.Tensor) -> torch.Tensor:
    """The same singular vectors, with singular values from 0.5 to 1: Muon amplifies the rounding of small ones."""
    if gradient.ndim != 2:
        return gradient
    left, values, right = torch.linalg.svd(gradient, full_matrices=False)
    return left * torch.linspace(0.5, 1, len(values)) @ right


def spread_step(
    make: Make, mesh: Any, cases: Sequence[tuple[Any, ...]], dtype: torch.dtype
) -> list[list[torch.Tensor]]:
    """Parameters after some steps on DTensors, as wholes, and after the same steps on whole tensors."""
    torch.manual_seed(0)
    wholes = [(torch.randn(shape).to(dtype), conditioned(torch.randn(shape)).to(dtype)) for shape, *_ in cases]
    params = [
        nn.Parameter(distribute_tensor(one, mesh, [own])) for (one, _), (_, own, _) in zip(wholes, cases, strict=True)
    ]
    others = [nn.Parameter(one.clone()) for one, _ in wholes]
    torch.manual_seed(dist.get_rank())  # which random rounding must not see
    made, like = make(params), make(others)
    for _ in range(_STEPS):
        for p, other, (_, gradient), (_, _, placement) in zip(params, others, wholes, cases, strict=True):
            share = gradient / mesh.size() if placement.is_partial() else gradient
            p.grad = (
                DTensor.from_local(share, mesh, [placement], run_check=False)
                if placement.is_partial()
                else distribute_tensor(gradient, mesh, [placement])
            )
            other.grad = gradient.clone()
        made.step()
        like.step()
    return [[p.detach().full_tensor() for p in params], [p.detach() for p in others]]


def judge_placements(mesh: Any) -> Faults:
    """Parameters of all placements are updated as whole ones; those of replicas stay the same."""
    makes: tuple[tuple[str, Make, Sequence[Any]], ...] = (
        ("AdamW", lambda p: opwright.optim.AdamW(p, lr=0.1), PLACEMENTS),
        ("clipped", lambda p: opwright.optim.SGD(p, lr=0.1, max_grad_norm=0.5), PLACEMENTS),
        ("LAMB", lambda p: opwright.optim.LAMB(p, lr=0.1), PLACEMENTS),
        ("Adafactor", lambda p: opwright.optim.Adafactor(p, lr=0.1), PLACEMENTS[:3]),
        ("Muon", lambda p: opwright.optim.Muon(p, lr=0.1), PLACEMENTS[:2]),
        ("schedule-free", lambda p: opwright.optim.ScheduleFreeAdamW(p, lr=0.1), PLACEMENTS),
    )
    faults = []
    for name, make, cases in makes:
        found, right = spread_step(make, mesh, cases, torch.float32)
        tolerance = 0.02 if name == "Muon" else 1e-4  # Muon computes in bfloat16
        for case, one, like in zip(cases, found, right, strict=True):
            if not torch.allclose(one, like, rtol=tolerance, atol=tolerance / 10):
                faults.append(f"{name} on {case}: differs by {(one - like).abs().max()}")
    return faults


def judge_rounding(mesh: Any) -> Faults:
    """Random rounding: the same for all processes that have the same part, whatever their seeds."""
    faults = []
    make: Make = lambda p: opwright.optim.AdamW(p, lr=0.01, rounding="stochastic")  # noqa: E731
    cases = [((5, 64), Shard(0), Shard(0)), ((64, 8), Replicate(), Replicate()), ((1, 8), Replicate(), Replicate())]
    found, right = spread_step(make, mesh, cases, torch.bfloat16)
    for case, one, like in zip(cases, found, right, strict=True):
        everyone = [torch.empty_like(one, dtype=torch.float32) for _ in range(mesh.size())]
        dist.all_gather(everyone, one.float())
        if not all(torch.equal(other, one.float()) for other in everyone):
            faults.append(f"{case}: replicas differ")
        if not torch.allclose(one, like, rtol=0.02, atol=0.02):
            faults.append(f"{case}: differs by {(one - like).abs().max()}")
    return faults


def judge_meshes(mesh: Any) -> Faults:
    """One optimizer of parameters on several meshes, one of which this process may not be in, and of plain ones."""
    torch.manual_seed(0)
    count = mesh.size()
    grid, alone = init_device_mesh("cpu", (1, count)), DeviceMesh("cpu", [0])
    wholes = [torch.randn(5, 64).bfloat16() for _ in range(4)]
    gradients = [torch.randn(5, 64).bfloat16() for _ in range(4)]
    places = ((mesh, [Shard(0)]), (grid, [Replicate(), Shard(1)]), (mesh, [Replicate()]), (alone, [Replicate()]))
    faults = []
    for rounding in ("stochastic", "nearest"):
        params = [nn.Parameter(distribute_tensor(w, *where)) for w, where in zip(wholes, places, strict=True)]
        params.append(nn.Parameter(wholes[0].clone()))
        exact = [nn.Parameter(w.float()) for w in (*wholes, wholes[0])]
        torch.manual_seed(dist.get_rank())
        make = {"lr": 0.01, "rounding": rounding}
        optimizer, like = opwright.optim.AdamW(params, **make), torch.optim.AdamW(exact, lr=0.01)
        for _ in range(_STEPS):
            for p, gradient, where in zip(params, gradients, places, strict=False):
                p.grad = distribute_tensor(gradient, *where)
            params[-1].grad = gradients[0].clone()
            for p, gradient in zip(exact, (*gradients, gradients[0]), strict=True):
                p.grad = gradient.float()
            optimizer.step()
            like.step()
        for number, (p, right) in enumerate(zip(params, exact, strict=True)):
            if number == 3 and dist.get_rank():
                continue  # it is in no mesh of this parameter
            whole = p.detach().full_tensor() if isinstance(p, DTensor) else p.detach()
            if not torch.allclose(whole.float(), right.detach(), rtol=0.02, atol=0.02):
                faults.append(f"{rounding}: parameter {number} differs by {(whole.float() - right).abs().max()}")
            everyone = [torch.empty_like(whole.float()) for _ in range(count)]
            if number != 3:
                dist.all_gather(everyone, whole.float())
                faults += (
                    []
                    if all(torch.equal(one, everyone[0]) for one in everyone)
                    else [f"{rounding}: replicas of {number} differ"]
                )
    return faults


def judge(count: int, which: str) -> Faults:
    """One of them."""
    os.environ["OPWRIGHT_STRICT"] = "0"  # LAMB is served by its definition, with a warning
    mesh = init_device_mesh("cpu", (count,))
    judges = (judge_fsdp, judge_placements, judge_rounding, judge_meshes)
    return {one.__name__.removeprefix("judge_"): one for one in judges}[which](mesh)
