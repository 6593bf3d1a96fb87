from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from opwright.ir.verifier import verify
from opwright.passes.buffers.narrow_products import narrow_products
from tests.passes.programs import lowered_from, steps, text

LEFT, RIGHT = torch.zeros(4, 6), torch.zeros(6, 5)

NARROWED = {
    "columns": (
        lambda x, y: (x @ y)[:, 2:4] * 2,
        """
        view slice_mm_columns: float32[y_size_0, 2] = y[d0, d1 + 2]
        call slice_mm: float32[x_size_0, 2] = aten::mm(x, slice_mm_columns)
        """,
    ),
    "rows": (
        lambda x, y: (x @ y)[1:3] * 2,
        """
        view slice_mm_rows: float32[2, x_size_1] = x[d0 + 1, d1]
        call slice_mm: float32[2, y_size_1] = aten::mm(slice_mm_rows, y)
        """,
    ),
}
KEPT = {
    "every other column": lambda x, y: (x @ y)[:, ::2] * 2,
    "a transposed product": lambda x, y: (x @ y).mT * 2,
    "two readers": lambda x, y: (lambda product: product[:, 2:4].sum() + product.sum())(x @ y),
    "also an output": lambda x, y: (lambda product: (product[:, 2:4] * 2, product))(x @ y),
    "one row": lambda x, y: (x @ y)[0] * 2,
}


@pytest.mark.parametrize(("reference", "expected"), NARROWED.values(), ids=NARROWED)
def test_narrowed(reference: Callable[..., torch.Tensor], expected: str) -> None:
    listing = steps(narrow_products(lowered_from(reference, LEFT, RIGHT)))
    assert listing.startswith(text(expected))


def test_a_slice_has_a_name_of_its_own() -> None:
    def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        slice_mm_columns = x.sin()
        part = (slice_mm_columns @ y)[:, 2:4]
        part_columns = part.sin() @ y[2:4]
        return part_columns @ part_columns.mT

    verify(narrow_products(lowered_from(reference, LEFT, RIGHT)))


@pytest.mark.parametrize("reference", KEPT.values(), ids=KEPT)
def test_kept(reference: Callable[..., torch.Tensor]) -> None:
    program = lowered_from(reference, LEFT, RIGHT)
    assert narrow_products(program) == program
