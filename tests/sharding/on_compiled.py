"""Calls with DTensors under torch.compile, on two processes: the operations of the function, by PyTorch's own rules."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication

import opwright
from tests.sharding import functions
from tests.sharding.judged import placed

Faults = list[str]
# Functions, the shapes of their arguments, and placements of these: even parts, since PyTorch's means are of even ones.
CASES: tuple[tuple[str, list[tuple[int, ...]], list[Any]], ...] = (
    ("spread_norm", [(4, 6), (6,)], [Shard(1), Shard(0)]),
    ("spread_mean", [(4, 6), (4, 6)], [Shard(0), Shard(0)]),
    ("spread_gate", [(4, 6), (4, 6)], [Replicate(), Partial()]),
)


def judge_cases(mesh: Any) -> Faults:
    """Results and gradients of compiled calls."""
    faults = []
    for name, shapes, placements in CASES:
        torch._dynamo.reset()  # so that sizes are numbers
        function = getattr(functions, name)
        operator = opwright.operator(function)
        torch.manual_seed(0)
        wholes = [torch.randn(shape, requires_grad=True) for shape in shapes]
        compiled = torch.compile(lambda *args, called=operator: called(*args) * 2, backend="aot_eager", fullgraph=True)
        given = [placed(one.detach(), mesh, [to]).requires_grad_() for one, to in zip(wholes, placements, strict=True)]
        found, right = compiled(*given).full_tensor(), function(*wholes) * 2
        if not torch.allclose(found, right, rtol=1e-4, atol=1e-5):
            faults.append(f"{name} on {placements}: another result")
        gradients = torch.autograd.grad(found.square().sum(), given)
        exact = torch.autograd.grad(right.square().sum(), wholes)
        for one, like in zip(gradients, exact, strict=True):
            if not torch.allclose(one.full_tensor(), like, rtol=1e-3, atol=1e-4):
                faults.append(f"{name} on {placements}: another gradient")
    return faults


def judge_outside(mesh: Any) -> Faults:
    """A value that the function reads outside is that of each call."""
    operator = opwright.operator(functions.spread_by_outside)
    x = torch.ones(4, 4)
    operator(x)
    compiled = torch.compile(lambda one: operator(one), backend="aot_eager", fullgraph=True)
    faults = []
    for factor in (2.0, 3.0):
        functions.OUTSIDE = factor
        found = compiled(distribute_tensor(x, mesh, [Shard(0)])).full_tensor()
        faults += [] if torch.equal(found, x * factor) else [f"times {factor} gives {found[0, 0]}"]
    functions.OUTSIDE = 1.0
    return faults


def judge_plain(mesh: Any) -> Faults:
    """Plain tensors are taken where PyTorch is told to take them, eagerly and compiled."""
    operator = opwright.operator(functions.spread_norm)
    torch.manual_seed(0)
    x, w = torch.randn(5, 6), torch.randn(6, requires_grad=True)
    right = functions.spread_norm(x, w)
    (exact,) = torch.autograd.grad(right.square().sum(), w)
    rows = distribute_tensor(x, mesh, [Shard(0)])
    faults = []
    for call in (operator, torch.compile(lambda *args: operator(*args), backend="aot_eager")):
        with implicit_replication():
            found = call(rows, w)
        if not isinstance(found, DTensor) or not torch.allclose(found.full_tensor(), right, rtol=1e-4, atol=1e-5):
            faults.append("another result beside a plain tensor")
        (gradient,) = torch.autograd.grad(found.full_tensor().square().sum(), w)
        gradient = gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
        if not torch.allclose(gradient, exact, rtol=1e-4, atol=1e-5):
            faults.append(f"another gradient of a plain tensor: {gradient}, not {exact}")
    return faults


def judge(count: int, which: str) -> Faults:
    """One of them."""
    mesh = init_device_mesh("cpu", (count,))
    judges = (judge_cases, judge_outside, judge_plain)
    return {one.__name__.removeprefix("judge_"): one for one in judges}[which](mesh)
