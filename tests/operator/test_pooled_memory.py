"""Large results live in memory that is kept from one tensor to the next (include/opwright/pool.h)."""

from pathlib import Path

import pytest
import torch

import opwright

MIB = 1 << 20

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the pool is for Linux")


@opwright.operator
def doubled_in_pool(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@opwright.operator
def raised(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def of_bytes(count: int) -> torch.Tensor:
    return torch.arange(count // 4, dtype=torch.float32)


@pytest.mark.parametrize("size", [MIB, 3 * MIB, 16 * MIB])
def test_a_freed_block_serves_the_next_result_of_any_operator(size):
    x = of_bytes(size)
    raised(of_bytes(64))
    first = doubled_in_pool(x)
    place = first.data_ptr()
    del first
    second = raised(x)
    assert second.data_ptr() == place
    assert torch.equal(second, x + 1)


@pytest.mark.parametrize("size", [MIB, 5 * MIB, 9 * MIB])
def test_results_that_live_at_once_lie_apart(size):
    x = of_bytes(size)
    results = [doubled_in_pool(x + k) for k in range(8)]
    assert all(torch.equal(result, (x + k) * 2) for k, result in enumerate(results))
    assert len({result.data_ptr() for result in results}) == 8


def test_a_view_keeps_the_block():
    x = of_bytes(2 * MIB)
    row = doubled_in_pool(x)[7:9]
    raised(x)
    assert row.tolist() == [14.0, 16.0]


def test_little_is_kept_however_many_sizes_there_were():
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    doubled_in_pool(of_bytes(8 * MIB - 4096))
    before = resident()
    for step in range(1, 41):
        doubled_in_pool(of_bytes(MIB + step * 160 * 1024))
    assert resident() - before < 100 * MIB
