"""The private parts of DTensor that calls use, on a mesh of this process alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.placement_types import _StridedShard
from torch.overrides import TorchFunctionMode

from opwright.tracing.torch_hooks.spread import (
    cut,
    cuts_of,
    has_spread,
    is_usual,
    local_of,
    only_counted,
    spec_for,
    spec_of,
    spread,
    uncounted,
)


@pytest.fixture
def mesh() -> Iterator[Any]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield init_device_mesh("cpu", (1,))
    finally:
        dist.destroy_process_group()


def test_a_tensor_is_described_and_made(mesh: Any) -> None:
    given = distribute_tensor(torch.randn(4, 3), mesh, [Shard(0)])
    assert has_spread([1, given])
    assert not has_spread([torch.ones(1)])
    spec = spec_of(given)
    assert is_usual(spec)
    assert hash(spec) == hash(spec_for(mesh, [Shard(0)], torch.empty(4, 3)))
    made = spread(local_of(given), spec_for(mesh, [Shard(0)], torch.empty(4, 3)))
    assert isinstance(made, DTensor)
    assert torch.equal(made.full_tensor(), given.full_tensor())


def test_cuts_before_a_dimension_is_spread_are_told() -> None:
    assert [cuts_of(one) for one in (Replicate(), Shard(1), _StridedShard(1, split_factor=4))] == [0, 1, 4]
    assert cut(1, 1) == Shard(1)
    assert cut(1, 4) == _StridedShard(1, split_factor=4)


def test_modes_that_count_are_told_from_others() -> None:
    with CommDebugMode():
        assert only_counted()
        with uncounted():
            assert torch._C._len_torch_dispatch_stack() == 0
        assert torch._C._len_torch_dispatch_stack() == 1
    with TorchFunctionMode():
        assert not only_counted()
