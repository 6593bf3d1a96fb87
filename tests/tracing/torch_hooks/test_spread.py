"""The private parts of DTensor that calls use, on a mesh of this process alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor._random import OffsetBasedRNGTracker
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.experimental import implicit_replication
from torch.distributed.tensor.placement_types import _StridedShard
from torch.overrides import TorchFunctionMode
from torch.testing._internal.distributed.fake_pg import FakeStore

from opwright.tracing.torch_hooks.spread import (
    cut,
    cuts_of,
    has_spread,
    is_usual,
    local_of,
    only_counted,
    replicates_implicitly,
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


def test_plain_tensors_are_replicated_where_torch_says_so() -> None:
    assert not replicates_implicitly()
    with implicit_replication():
        assert replicates_implicitly()


def test_processors_have_no_offsets_of_random_numbers(mesh: Any) -> None:
    """Why functions with random numbers are served by PyTorch's own operations, one generator for each process."""
    with pytest.raises(RuntimeError, match="requires the presence of CUDA/CUDA-like"):
        OffsetBasedRNGTracker(mesh)


@pytest.mark.nightly
@pytest.mark.seconds(120)
def test_compiled_graphs_have_no_guard_on_whole_sizes() -> None:
    """Why operators on DTensors are their functions under compilers: a factor of a whole size would go stale."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=2)
    try:
        mesh = init_device_mesh("cpu", (2,))
        compiled = torch.compile(lambda x: x * x.shape[0], backend="eager", dynamic=False)
        assert _rows(compiled, 4, mesh) == 4
        assert _rows(compiled, 5, mesh) == 4  # not 5: the second process has two rows of either
    finally:
        dist.destroy_process_group()


def _rows(call: Any, whole: int, mesh: Any) -> float:
    given = DTensor.from_local(torch.ones(2, 3), mesh, [Shard(0)], run_check=False, shape=(whole, 3), stride=(3, 1))
    return float(call(given).to_local()[0, 0])
