from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import max_pool1d, max_pool2d

from opwright.api.operator import Operator
from opwright.ir.program import Call
from opwright.passes.buffers.pool_without_positions import pool_without_positions
from tests.passes.programs import lowered_from

KEPT: dict[str, tuple[Callable[[torch.Tensor], object], torch.Tensor]] = {
    "positions are used": (lambda x: max_pool1d(x, 2, return_indices=True), torch.rand(2, 3, 8)),
    "an image": (lambda x: max_pool2d(x, 2), torch.rand(2, 3, 8, 8)),
    "a window of two rows": (lambda x: max_pool2d(x, 2, padding=(1, 0)), torch.rand(2, 3, 1, 8)),
}


@pytest.mark.parametrize("shape", [(2, 3, 16), (3, 16)], ids=str)
def test_rows(shape: tuple[int, ...]) -> None:
    def pooled(x: torch.Tensor) -> torch.Tensor:
        return max_pool1d(x.sin(), 3, 2, 1, 2, ceil_mode=True) * 2.0

    x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    program = pool_without_positions(lowered_from(pooled, x))
    assert [step.function for step in program.steps if isinstance(step, Call)] == ["aten::max_pool1d"]
    operator = Operator(pooled, name=f"pooled_{len(shape)}")
    torch.testing.assert_close(operator(x), pooled(x))
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize(("reference", "x"), KEPT.values(), ids=KEPT)
def test_kept(reference: Callable[[torch.Tensor], object], x: torch.Tensor) -> None:
    program = lowered_from(reference, x)
    assert pool_without_positions(program) == program
