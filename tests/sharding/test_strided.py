"""Operators on `_StridedShard`: kernels run on the parts as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore  # a mesh of which one process is there

import opwright
from opwright.sharding.runs import Cut, are_told, runs_of
from tests.sharding import functions

_STRIDED = (_StridedShard(0, split_factor=2), Shard(0))
_ROWS = slice(4, 6)  # of eight, that process 1 of 2 x 2 has


@contextmanager
def mesh_of(rank: int, sizes: tuple[int, int]) -> Iterator[DeviceMesh]:
    """A mesh of which one process is there."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=sizes[0] * sizes[1])
    try:
        yield init_device_mesh("cpu", sizes)
    finally:
        dist.destroy_process_group()


@pytest.fixture
def mesh() -> Iterator[DeviceMesh]:
    with mesh_of(1, (2, 2)) as made:
        yield made


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


# Processes, sizes of the mesh and rows: even, uneven, and fewer rows than processes.
UNEVEN = [(1, (2, 2), 7), (3, (2, 2), 7), (2, (2, 2), 5), (3, (2, 2), 3), (5, (3, 2), 11), (4, (3, 2), 2)]


@pytest.mark.parametrize(("rank", "sizes", "rows"), UNEVEN)
def test_parts_may_be_uneven_and_empty(rank: int, sizes: tuple[int, int], rows: int) -> None:
    placements = (_StridedShard(0, split_factor=2), Shard(0))
    with mesh_of(rank, sizes) as mesh:
        places = mesh.get_coordinate()
        assert places is not None
        own = list(range(rows))[slice(*_bounds(rows, sizes[1], places[1]))]
        own = own[slice(*_bounds(len(own), sizes[0], places[0]))]  # FSDP2 cuts what tensor parallelism has cut
        torch.manual_seed(0)
        x, w = torch.randn(rows, 6), torch.randn(6)
        operator = opwright.operator(functions.spread_norm)
        for _ in range(2):
            given = spread(x[own], rows, placements, mesh).requires_grad_()
            weight = spread(w, 6, (Replicate(), Replicate()), mesh).requires_grad_()
            made = operator(given, weight)
            assert made.placements == placements
            assert made.shape == (rows, 6)
            torch.testing.assert_close(made.to_local(), functions.spread_norm(x[own], w))
            cotangent = spread(x[own], rows, placements, mesh)
            of_x, of_w = torch.autograd.grad(made, (given, weight), cotangent)
            right = torch.func.vjp(functions.spread_norm, x[own], w)[1](x[own])
            torch.testing.assert_close(of_x.to_local(), right[0])
            torch.testing.assert_close(of_w.to_local(), right[1])  # what this process adds
            assert of_w.placements == (Partial(), Partial())
        assert operator.last_rung == "cpp" or not own


def _bounds(size: int, count: int, index: int) -> tuple[int, int]:
    full = -(-size // count)
    return full * index, full * (index + 1)


def test_a_process_without_rows_adds_what_changes_nothing() -> None:
    with mesh_of(3, (2, 2)) as mesh:
        given = spread(torch.ones(0, 6), 2, _STRIDED, mesh)
        made = opwright.operator(functions.spread_largest)(given)
        assert made.placements == (Partial("max"), Partial("max"))
        assert torch.equal(made.to_local(), torch.full((6,), float("-inf")))


CUTS = [(_StridedShard(0, split_factor=factor), *[Shard(0)] * after) for factor, after in ((2, 1), (3, 0), (4, 2))]


@pytest.mark.parametrize("placements", CUTS)
def test_runs_are_those_that_pytorch_reads(placements: tuple[Any, ...]) -> None:
    counts = (3, 2, 2)[: len(placements)]
    cuts = [Cut(getattr(one, "split_factor", 1), count) for one, count in zip(placements, counts, strict=True)]
    for rows, place in product(range(14), product(*map(range, counts))):
        own = torch.arange(rows)
        for placement, count, index in zip(placements, counts, place, strict=True):
            own = placement._split_tensor(own, count, with_padding=False)[0][index]
        assert [row for run in runs_of(rows, cuts, place) for row in run] == own.tolist()


def test_placements_do_not_always_say_what_fsdp_has_cut() -> None:
    cuts = [Cut(2, 3), Cut(1, 2)]
    assert [rows for rows in range(1, 20) if not are_told(rows, cuts)] == [7, 13, 19]
    with mesh_of(5, (3, 2)) as mesh:
        gate = opwright.operator(functions.spread_gate)
        given = spread(torch.ones(1, 6), 7, _STRIDED, mesh)  # by FSDP2; PyTorch says that it has none
        gate(given, given)
        assert gate.last_rung != "cpp"


def test_what_needs_the_whole_axis_or_other_parts_is_left_to_pytorch(mesh: DeviceMesh) -> None:
    operator, gate = (opwright.operator(one) for one in (functions.spread_columns, functions.spread_gate))
    given = spread(torch.ones(2, 6), 8, _STRIDED, mesh)
    other = spread(torch.ones(2, 6), 8, (Shard(0), Shard(0)), mesh)
    assert gate(given, given).placements == _STRIDED
    assert gate.last_rung == "cpp"
    for called, args in ((operator, (given,)), (gate, (given, other))):
        called(*args)
        assert called.last_rung != "cpp"
