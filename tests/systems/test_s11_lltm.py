"""S11: LLTM by hand: the cell as kernels for the CPU and for CUDA, the whole step in C++."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tests.systems.by_hand import by_hand, written


def double(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def test_the_rungs_are_written() -> None:
    assert written(by_hand("lltm", "lltm_cell")) == {"cpp", "cuda"}
    assert written(by_hand("lltm", "lltm")) == {"cpp"}


def test_the_cell_by_hand() -> None:
    cell = by_hand("lltm", "lltm_cell")
    gates, old_cell = double(3, 12), double(3, 4)
    for ours, right in zip(cell.on("cpp")(gates, old_cell), cell.reference(gates, old_cell), strict=True):
        torch.testing.assert_close(ours, right)
    assert gradcheck(cell.on("cpp"), (gates, old_cell))
    assert gradgradcheck(cell.on("cpp"), (gates, old_cell))


def test_only_one_result_is_used() -> None:
    cell = by_hand("lltm", "lltm_cell")
    gates, old_cell = double(3, 12), double(3, 4)
    ours = torch.autograd.grad(cell.on("cpp")(gates, old_cell)[0].sum(), (gates, old_cell))
    right = torch.autograd.grad(cell.reference(gates, old_cell)[0].sum(), (gates, old_cell))
    torch.testing.assert_close(ours, right)


@pytest.mark.nightly  # against torch/extension.h: some twenty seconds of a compiler
def test_the_step_by_hand() -> None:
    lltm = by_hand("lltm", "lltm")
    given = double(2, 5), double(2, 3), double(2, 3), double(9, 8), double(9)
    for ours, right in zip(lltm.on("cpp")(*given), lltm.reference(*given), strict=True):
        torch.testing.assert_close(ours, right)
    assert gradcheck(lltm.on("cpp"), given)
    assert gradgradcheck(lltm.on("cpp"), given)
