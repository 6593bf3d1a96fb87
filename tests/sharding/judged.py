"""Calls with DTensors, judged against the function on whole tensors: results, gradients, second order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Shard, distribute_tensor

import opwright
from tests.sharding import functions

Placements = Sequence[Any]


@dataclass(frozen=True)
class Judged:
    """What a call gave.

    Attributes:
        fault: What is wrong; empty if nothing is.
        rung: What served it.
    """

    fault: str
    rung: str | None


def placed(whole: torch.Tensor, mesh: Any, placements: Placements, seed: int = 0) -> Any:
    """A DTensor of a whole tensor that all processes have; addends are random, and sum to it."""
    partial = [level for level, placement in enumerate(placements) if isinstance(placement, Partial)]
    if not partial:
        return distribute_tensor(whole, mesh, list(placements))
    from torch.distributed.tensor import Replicate

    rest = [Replicate() if isinstance(placement, Partial) else placement for placement in placements]
    local = distribute_tensor(whole, mesh, rest).to_local()
    for level in partial:
        count, own = mesh.size(level), mesh.get_coordinate()[level]
        generator = torch.Generator().manual_seed(seed + 17 + level)
        addends = [torch.randn(local.shape, generator=generator, dtype=local.dtype) for _ in range(count - 1)]
        local = addends[own] if own < count - 1 else local - sum(addends, torch.zeros_like(local))
    return DTensor.from_local(local, mesh, list(placements), run_check=False, shape=whole.shape, stride=whole.stride())


def judge(
    operator: Callable[..., Any],
    function: Callable[..., Any],
    wholes: Sequence[torch.Tensor],
    mesh: Any,
    placements: Sequence[Placements],
    orders: int = 2,
) -> Judged:
    """Call an operator on DTensors, and compare with the function, up to second order."""
    given = [placed(whole, mesh, to).detach() for whole, to in zip(wholes, placements, strict=True)]
    floating = [p for p, whole in enumerate(wholes) if whole.is_floating_point()]
    wholes = [whole.detach().clone() for whole in wholes]
    for position in floating:
        given[position].requires_grad_()
        wholes[position].requires_grad_()
    found, expected = operator(*given), function(*wholes)
    rung = getattr(operator, "last_rung", None)
    return Judged(_difference(found, expected, given, wholes, floating, orders), rung)


Cases = Sequence[tuple[str, list[tuple[int, ...]], list[tuple[Any, ...]]]]  # functions, shapes, placements of each


def judge_cases(cases: Cases, mesh: Any, *, orders: int, by_kernels: bool = False) -> list[str]:
    """What is wrong with functions of `tests.sharding.functions` on a mesh of one dimension.

    Args:
        cases: Their names, the shapes of their arguments, and placements of these.
        mesh: The mesh.
        orders: Of the derivatives that are compared.
        by_kernels: Whether it is wrong that the function itself serves a call.
    """
    faults = []
    for name, shapes, placements in cases:
        function = getattr(functions, name)
        operator = opwright.operator(function)
        torch.manual_seed(0)
        wholes = [torch.randn(shape) for shape in shapes]
        for given in placements:
            found = judge(operator, function, wholes, mesh, [(one,) for one in given], orders)
            faults += [f"{name} on {given}: {found.fault}"] if found.fault else []
            is_left = by_kernels and found.rung == "composed"
            faults += [f"{name} on {given}: by the function"] if is_left else []
    return faults


def _difference(found: Any, expected: Any, given: Any, wholes: Any, floating: Any, orders: int) -> str:
    found, expected = _tensors(found), _tensors(expected)
    for order in range(orders + 1):
        if len(found) != len(expected):
            return f"order {order}: {len(found)} results instead of {len(expected)}"
        full = [one.full_tensor() if isinstance(one, DTensor) else one for one in found]
        for position, (one, like) in enumerate(zip(full, expected, strict=True)):
            if one.shape != like.shape:
                return f"order {order}: result {position} has shape {[*one.shape]}"
            if not torch.allclose(one.to(like.dtype), like, rtol=1e-3, atol=1e-4 * (1 + like.abs().max().item())):
                return f"order {order}: result {position} differs by {(one - like).abs().max()}"
        if order == orders or not floating:
            return ""
        losses = [_loss(tensors) for tensors in (full, expected)]
        if not losses[1].requires_grad:
            return ""
        sides = ((losses[0], given), (losses[1], wholes))
        both = [
            torch.autograd.grad(loss, [side[p] for p in floating], create_graph=True, allow_unused=True)
            for loss, side in sides
        ]
        kept = [p for p, one in enumerate(both[1]) if one is not None]
        if any(both[0][p] is None for p in kept):
            return f"order {order + 1}: a gradient is missing"
        found, expected = ([side[p] for p in kept] for side in both)
    return ""


def _loss(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return sum((one.square().sum() for one in tensors if one.is_floating_point()), torch.zeros(()))


def _tensors(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def has_empty(mesh: Any, wholes: Sequence[torch.Tensor], placements: Sequence[Placements]) -> bool:
    """Whether a process may have nothing of a tensor."""
    return any(
        isinstance(one, Shard) and whole.shape[one.dim] < mesh.size(level)
        for whole, to in zip(wholes, placements, strict=True)
        for level, one in enumerate(to)
    )
