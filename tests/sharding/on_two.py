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
from tests.sharding.judged import Cases, judge_cases
from tests.sharding.judged import judge as judge_call

_R, _P = Replicate(), Partial()
# On placements that are even, uneven and empty.
CASES: Cases = (
    ("spread_mean", [(5, 6), (5, 6)], [(Shard(0), Shard(0)), (_P, _R), (Shard(1), _R)]),
    ("spread_norm", [(5, 6), (6,)], [(Shard(0), _R), (_R, Shard(0)), (_R, _R)]),
    ("spread_largest", [(1, 6)], [(Shard(0),), (Shard(1),)]),
)


# What an expert would send in a forward and in a backward pass: how many collectives at most.
EXPERT = (
    ("spread_sum", [(6, 8), (6, 8)], [Shard(1), Shard(1)], 0, 0),
    ("spread_gate", [(5, 8), (5, 8)], [Shard(0), Shard(0)], 0, 0),
    ("spread_norm", [(5, 8), (8,)], [Shard(0), _R], 0, 0),
    ("spread_norm", [(5, 40), (40,)], [Shard(1), Shard(0)], 1, 1),
    ("spread_softmax", [(5, 40)], [Shard(1)], 2, 1),
    ("spread_layer_norm", [(5, 41), (41,), (41,)], [Shard(1), Shard(0), Shard(0)], 2, 2),
)


def judge_expert(count: int) -> list[str]:
    """At night: no more collectives than an expert would use, and kernels run while they are counted."""
    mesh = init_device_mesh("cpu", (count,))
    faults = []
    for name, shapes, placements, forward, backward in EXPERT:
        function = getattr(functions, name)
        operator = opwright.operator(function)
        torch.manual_seed(0)
        wholes = [torch.randn(shape) for shape in shapes]
        found = judge_call(operator, function, wholes, mesh, [(one,) for one in placements], orders=1)
        faults += [f"{name} on {placements}: {found.fault}"] if found.fault else []
        given = [
            distribute_tensor(one, mesh, [to]).requires_grad_() for one, to in zip(wholes, placements, strict=True)
        ]
        with CommDebugMode() as ahead:
            made = operator(*given)
        rung, cotangent = operator.last_rung, torch.ones_like(made)
        with CommDebugMode() as back:
            torch.autograd.grad(made, given, cotangent)
        sent = ahead.get_total_counts(), back.get_total_counts()
        if sent[0] > forward or sent[1] > backward or rung != "cpp" or made.placements != (placements[0],):
            faults.append(f"{name} on {placements}: {sent} collectives, by {rung}, {made.placements}")
    return faults


def judge_collectives(mesh: Any) -> list[str]:
    """By day: rows that are whole send nothing, and rows that are spread one sum each."""
    faults = []
    operator = opwright.operator(functions.spread_norm)
    torch.manual_seed(0)
    x, w = torch.randn(5, 40), torch.randn(40)
    expected = functions.spread_norm(x, w)
    for placements, most in (((Shard(0), _R), 0), ((Shard(1), Shard(0)), 1)):
        given = [distribute_tensor(one, mesh, [to]) for one, to in zip((x, w), placements, strict=True)]
        with CommDebugMode() as counted:
            made = operator(*given)
        if counted.get_total_counts() > most or operator.last_rung != "cpp":
            faults.append(f"{placements}: {counted.get_comm_counts()}, {operator.last_rung}")
        if not torch.allclose(made.full_tensor(), expected, rtol=1e-4, atol=1e-5):
            faults.append(f"{placements}: another result")
    return faults


def judge_short_way(mesh: Any) -> list[str]:
    """The second call of a kind goes the short way: with the same results, gradients, constants and constraints."""
    faults = []
    operator = opwright.operator(functions.spread_scaled)
    torch.manual_seed(0)
    x, other = torch.randn(6, 8), torch.randn(6, 8)
    for by in (2.0, 2.0, 3.0, 2.0):
        for whole in (x, other):
            given = distribute_tensor(whole, mesh, [Shard(0)]).requires_grad_()
            made = operator(given, by)
            (gradient,) = torch.autograd.grad(made.square().sum(), given)
            with torch.no_grad():
                again = operator(given.detach(), by)
            expected = functions.spread_scaled(whole, by)
            if not torch.allclose(made.full_tensor(), expected) or not torch.equal(
                again.full_tensor(), made.full_tensor()
            ):
                faults.append(f"by {by}: another result")
            if not torch.allclose(gradient.full_tensor(), 2 * by * expected, rtol=1e-5):
                faults.append(f"by {by}: another gradient")
            if made.placements != (Shard(0),) or not made.requires_grad or again.requires_grad:
                faults.append(f"by {by}: {made.placements}, {made.requires_grad}, {again.requires_grad}")
    for by in (0.0, -0.0, 0.0):  # equal for Python
        given = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
        (gradient,) = torch.autograd.grad(operator(given, by).sum(), given)
        if bool(gradient.to_local().signbit().any()) is not str(by).startswith("-"):
            faults.append(f"by {by}: the gradient of another zero")
    gate = opwright.operator(functions.spread_gate)
    right = [torch.func.grad(lambda a, b: functions.spread_gate(a, b).square().sum())(x, other)]
    right += [torch.func.grad(lambda a: torch.func.grad(lambda c: functions.spread_gate(c, other).sum())(a).sum())(x)]
    for _ in range(4):  # from the third on, nodes keep what the first one did
        left, factor = (distribute_tensor(whole, mesh, [Shard(0)]).requires_grad_() for whole in (x, other))
        (first,) = torch.autograd.grad(gate(left, factor).square().sum(), left)
        (slope,) = torch.autograd.grad(gate(left, factor).sum(), left, create_graph=True)
        found = [first, *torch.autograd.grad(slope.sum(), left)]
        if not all(torch.allclose(one.full_tensor(), like, 1e-4, 1e-5) for one, like in zip(found, right, strict=True)):
            faults.append("another gradient of a gate")
    short = operator.server.serve_spread
    with torch.autocast("cpu"):
        if short is None or short((given, by), {}) is not NotImplemented:
            faults.append("there is no short way, or it serves under autocast")
    return faults


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
    return [*judge_cases(CASES, mesh, orders=1), *judge_collectives(mesh), *judge_short_way(mesh), *judge_mixture(mesh)]
