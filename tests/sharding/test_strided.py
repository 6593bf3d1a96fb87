"""Operators on `_StridedShard`: kernels run on the parts as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore  # a mesh of which one process is there

import opwright
from tests.sharding import functions

_STRIDED = (_StridedShard(0, split_factor=2), Shard(0))
_ROWS = slice(4, 6)  # of eight, that process 1 of 2 x 2 has


@pytest.fixture
def mesh() -> Iterator[DeviceMesh]:
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield init_device_mesh("cpu", (2, 2))
    dist.destroy_process_group()


def spread(local: torch.Tensor, rows: int, placements: Any, mesh: DeviceMesh) -> DTensor:
    """A DTensor of what this process has."""
    like = torch.empty(rows, *local.shape[1:], device="meta")
    return DTensor.from_local(local.clone(), mesh, placements, run_check=False, shape=like.shape, stride=like.stride())


def test_an_axis_that_runs_through_stays_in_its_parts(mesh: DeviceMesh) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(8, 6), torch.randn(6)
    operator = opwright.operator(functions.spread_norm)
    given = spread(x[_ROWS], 8, _STRIDED, mesh).requires_grad_()
    weight = spread(w, 6, (Replicate(), Replicate()), mesh)
    for _ in range(3):
        made = operator(given, weight)
        assert operator.last_rung == "cpp"
        assert made.placements == _STRIDED
        assert made.shape == (8, 6)
        right = functions.spread_norm(x, w)[_ROWS]
        torch.testing.assert_close(made.to_local(), right)
        (gradient,) = torch.autograd.grad(made, given, spread(x[_ROWS], 8, _STRIDED, mesh))
        expected = torch.func.vjp(lambda one: functions.spread_norm(one, w), x)[1](x)[0][_ROWS]
        torch.testing.assert_close(gradient.to_local(), expected)
        assert gradient.placements == _STRIDED


def test_what_needs_the_whole_axis_or_other_parts_is_left_to_pytorch(mesh: DeviceMesh) -> None:
    operator, gate = (opwright.operator(one) for one in (functions.spread_columns, functions.spread_gate))
    given = spread(torch.ones(2, 6), 8, _STRIDED, mesh)
    other = spread(torch.ones(2, 6), 8, (Shard(0), Shard(0)), mesh)
    uneven = spread(torch.ones(2, 6), 7, _STRIDED, mesh)
    assert gate(given, given).placements == _STRIDED
    assert gate.last_rung == "cpp"
    for called, args in ((operator, (given,)), (gate, (given, other)), (gate, (uneven, uneven))):
        called(*args)
        assert called.last_rung != "cpp"
