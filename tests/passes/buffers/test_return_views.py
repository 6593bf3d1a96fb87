from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from opwright.passes.buffers.return_views import return_views
from tests.passes.programs import lowered_from, steps, text

X, Y = torch.zeros(2, 3, 4), torch.zeros(4, 5)

KEPT: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "another order": lambda x, y: (x @ y).mT,
    "a part": lambda x, y: (x @ y)[:1],
    "an argument's memory": lambda x, y: x.view(6, 4) + 0,
    "returned as it is, too": lambda x, y: (product := x[0] @ y, product.clone()),
    "computed": lambda x, y: (x @ y) * 2,
}


def test_a_product_in_another_shape_is_returned() -> None:
    listing = steps(return_views(lowered_from(lambda x, y: x @ y, X, Y)))
    assert listing.endswith(
        text("""
        view output_0_1: float32[x_size_0, x_size_1, y_size_1] = mm[d0*x_size_1 + d1, d2]
        """)
    )


@pytest.mark.parametrize("reference", KEPT.values(), ids=KEPT)
def test_kept(reference: Callable[[torch.Tensor, torch.Tensor], Any]) -> None:
    program = lowered_from(reference, X, Y)
    assert return_views(program) == program
