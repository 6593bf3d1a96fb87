from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.functional import linear

from opwright.passes.buffers.bias_in_product import bias_in_product
from opwright.passes.loops.fuse import fuse
from opwright.passes.scalars.prune import prune
from tests.passes.programs import lowered_from, steps, text

X, W, B = torch.zeros(2, 3, 4), torch.zeros(5, 4), torch.zeros(5)

MOVED = {
    "a matrix": (
        lambda x, y, z: linear(x, y, z),
        X[0],
        "call output_0: float32[x_size_0, y_size_0] = aten::linear(x, y, z)",
    ),
    "more dimensions": (
        lambda x, y, z: linear(x, y, z),
        X,
        """
        call view_x: float32[x_size_0*x_size_1, x_size_2] = aten::reshape(x, [x_size_0*x_size_1, x_size_2])
        call result: float32[x_size_0*x_size_1, y_size_0] = aten::linear(view_x, y, z)
        view output_0_1: float32[x_size_0, x_size_1, y_size_0] = result[d0*x_size_1 + d1, d2]
        """,
    ),
    "a factor that is not transposed": (
        lambda x, y, z: torch.addmm(z, x, x.t() @ x @ y.t()),
        X[0],
        """
        view permute_x: float32[x_size_1, x_size_0] = x[d1, d0]
        call mm: float32[x_size_1, x_size_1] = aten::mm(permute_x, x)
        view permute_y: float32[x_size_1, y_size_0] = y[d1, d0]
        call mm_1: float32[x_size_1, y_size_0] = aten::mm(mm, permute_y)
        view mm_1_transposed: float32[y_size_0, x_size_1] = mm_1[d1, d0]
        call output_0: float32[x_size_0, y_size_0] = aten::linear(x, mm_1_transposed, z)
        """,
    ),
}
KEPT: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]] = {
    "fused with what uses it": lambda x, y, z: linear(x, y, z).tanh(),
    "the product is used too": lambda x, y, z: (product := x @ y.t(), product + z)[1] @ product.t(),
    "another sum": lambda x, y, z: x @ y.t() + (x @ y.t()).sum(1, keepdim=True),
    "multiplied": lambda x, y, z: x @ y.t() * z,
}


def run(reference: Callable[..., Any], x: torch.Tensor) -> tuple[str, str]:
    program = prune(fuse(lowered_from(reference, x, W, B)))
    return steps(program), steps(prune(bias_in_product(program)))


@pytest.mark.parametrize(("reference", "x", "expected"), MOVED.values(), ids=MOVED)
def test_moved(reference: Callable[..., Any], x: torch.Tensor, expected: str) -> None:
    assert run(reference, x)[1] == text(expected)


@pytest.mark.parametrize("reference", KEPT.values(), ids=KEPT)
def test_kept(reference: Callable[..., Any]) -> None:
    before, after = run(reference, X[0])
    assert before == after
