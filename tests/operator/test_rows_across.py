"""Rows whose elements are neighbours across them in memory (channels last, transposed tensors), packed in panels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.checking.accuracy import Comparison
from tests.quiet_settings import quiet_settings
from tests.suite.built_together import build_together
from tests.suite.nights import mostly_at_night


def each_kind_of_loop(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Whole rows of one axis and of two, rows reduced to a number, and element-wise work."""
    inner = (x - x.mean((2, 3), keepdim=True)).square()
    return torch.softmax(x, -1), inner, x.sum((0, 2, 3)), torch.where(mask, x * 2, x + 1)


# Of a panel, several panels and a part of one; pieces of rows longer than a panel; sums in several pieces.
SHAPES = ((2, 4, 2, 2), (3, 21, 5, 7), (1, 16, 16, 17), (2, 35, 9, 61), (2, 5, 260, 260))
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "reversed": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "a slice": lambda x: torch.cat((x, x), 1).contiguous(memory_format=torch.channels_last)[:, 1 : 1 + x.shape[1]],
}
CASES = [(layout, dtype) for dtype in (torch.float32, torch.bfloat16, torch.float64) for layout in LAYOUTS]
BY_DAY = [("channels last", torch.float32), ("a slice", torch.float32), ("reversed", torch.bfloat16)]
OPERATOR = Operator(each_kind_of_loop, name="rows_across", settings=quiet_settings(optimized=False))


def _given(shape: tuple[int, ...], layout: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(shape, generator=generator).to(dtype)
    return LAYOUTS[layout](x), LAYOUTS[layout](torch.rand(shape, generator=generator) < 0.5)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_together(*(lambda case=case: OPERATOR(*_given(SHAPES[1], *case)) for case in BY_DAY[::2]))


@pytest.mark.parametrize(("layout", "dtype"), mostly_at_night(CASES, BY_DAY), ids=str)
def test_results_are_those_of_float64(layout: str, dtype: torch.dtype) -> None:
    for shape in SHAPES:
        x, mask = _given(shape, layout, dtype)
        mine, eager = OPERATOR(x, mask), each_kind_of_loop(x, mask)
        exact = each_kind_of_loop(x.double(), mask)
        assert OPERATOR.last_rung == "cpp"
        Comparison("result", mine, eager, exact, inputs=[x]).judge()


def sums_of_columns(x: Tensor) -> Tensor:
    """Rows of a transposed tensor, which are reduced several at a time."""
    return x.T.abs().sum(-1)


@pytest.mark.parametrize("shape", [(70_000, 20), (70_001, 5), (300, 70)])
def test_rows_across_are_reduced_in_pieces(shape: tuple[int, int]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    mine = SUMS(x)
    assert SUMS.last_rung == "cpp"
    Comparison("result", (mine,), (sums_of_columns(x),), (sums_of_columns(x.double()),), inputs=[x]).judge()


SUMS = Operator(sums_of_columns, name="sums_of_columns", settings=quiet_settings(optimized=False))
