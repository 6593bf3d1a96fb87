"""What sharding by hand gets wrong, judged on two processes at night: each line is a trap that somebody fell into."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import opwright
from tests.sharding import functions
from tests.sharding.judged import Cases, judge_cases

_R, _P, _ROWS, _COLUMNS = Replicate(), Partial(), Shard(0), Shard(1)
CASES: Cases = (
    ("spread_flat", [(5, 6)], [(_ROWS,), (_COLUMNS,), (_P,)]),  # uneven parts, flattened
    ("spread_flat", [(4, 6)], [(_ROWS,), (_COLUMNS,)]),
    ("spread_over_size", [(5, 6)], [(_ROWS,), (_COLUMNS,), (_P,)]),  # x.shape[0] is that of the whole
    ("spread_positions", [(5, 6)], [(_ROWS,), (_COLUMNS,), (_P,)]),  # and so is arange
    ("spread_largest", [(5, 6)], [(_ROWS,), (_COLUMNS,), (_P,)]),
    ("spread_smallest", [(5, 6)], [(_ROWS,), (_COLUMNS,), (_P,)]),
    ("spread_smallest", [(1, 6)], [(_ROWS,), (_COLUMNS,)]),  # a process has nothing
    ("spread_sliced", [(5, 6)], [(_ROWS,), (_COLUMNS,), (_P,)]),
    ("spread_rolled", [(5, 6)], [(_ROWS,), (_COLUMNS,), (_P,)]),
    ("spread_chunks", [(5, 18), (5, 6)], [(_COLUMNS, _COLUMNS), (_ROWS, _R), (_P, _R)]),
    ("spread_padded", [(5, 6)], [(_ROWS,), (_COLUMNS,), (_P,)]),
    ("spread_pairs", [(5,)], [(_ROWS,), (_P,)]),
    ("spread_linear", [(2, 3, 5), (7, 5)], [(Shard(2), Shard(1)), (_R, _ROWS), (_P, _P)]),
)


def _put_together(whole: torch.Tensor, function: str, mesh: Any) -> DTensor:
    """A DTensor whose parts give the whole by their mean, maximum or minimum."""
    count, own = mesh.size(), mesh.get_local_rank()
    noise = torch.randn((count, *whole.shape), generator=torch.Generator().manual_seed(5))
    if function == "avg":
        local = whole + noise[own] - noise.mean(0)
    else:
        best = (noise.abs() if function == "min" else -noise.abs()) * (noise.abs() > noise.abs().amin(0))
        local = whole + best[own]
    return DTensor.from_local(local, mesh, [Partial(function)], run_check=False)


def judge_other_parts(mesh: Any) -> list[str]:
    """Arguments that are put together by a mean, a maximum or a minimum: of linear functions and of others."""
    faults = []
    for name in ("spread_sum", "spread_gate", "spread_norm", "spread_largest"):
        function = getattr(functions, name)
        operator = opwright.operator(function)
        shapes = {"spread_norm": [(6, 4), (4,)], "spread_largest": [(6, 4)]}.get(name, [(6, 4), (6, 4)])
        torch.manual_seed(0)
        wholes = [torch.randn(shape).requires_grad_() for shape in shapes]
        right = function(*wholes)
        exact = torch.autograd.grad(right.square().sum(), wholes)
        for kind in ("avg", "max", "min"):
            given = [_put_together(wholes[0].detach(), kind, mesh).requires_grad_()]
            given += [distribute_tensor(one.detach(), mesh, [_R]).requires_grad_() for one in wholes[1:]]
            made = operator(*given)
            gradients = torch.autograd.grad(made.full_tensor().square().sum(), given)
            for one, like in zip((made, *gradients), (right, *exact), strict=True):
                if not torch.allclose(one.full_tensor(), like, rtol=1e-4, atol=1e-5):
                    faults.append(f"{name} on Partial({kind}): another result or gradient")
    return faults


def judge(count: int) -> list[str]:
    """All of it."""
    mesh = init_device_mesh("cpu", (count,))
    return [*judge_cases(CASES, mesh, orders=2, by_kernels=True), *judge_other_parts(mesh)]
