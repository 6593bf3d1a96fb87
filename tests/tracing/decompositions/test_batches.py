"""Products with one operand for a whole batch are one product; ones on a diagonal are chosen by index."""

import pytest
import torch

import opwright


@opwright.operator
def of_one_left(matrix: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.bmm(matrix.expand(rows.shape[0], -1, -1), rows)


@opwright.operator
def of_one_right(matrix: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.bmm(rows.mT, matrix.mT.expand(rows.shape[0], -1, -1))


@opwright.operator
def on_a_diagonal(x: torch.Tensor, source: torch.Tensor, offset: int = 0) -> torch.Tensor:
    return torch.diagonal_scatter(x * 2, source * 3, offset, -2, -1) + 1


@pytest.mark.parametrize("product", [of_one_left, of_one_right])
@pytest.mark.parametrize("columns", [1, 5])
def test_a_product_of_one_for_all(product, columns):
    args = torch.randn(4, 3, dtype=torch.float64), torch.randn(6, 3, columns, dtype=torch.float64)
    torch.testing.assert_close(product(*args), product.reference(*args))


SHAPES = {
    "square": ((3, 3), 0),
    "below": ((5, 3), -2),
    "short": ((3, 5), 0),
    "above": ((3, 5), 1),
    "batch": ((2, 4, 3), -1),
}


@pytest.mark.parametrize(("shape", "offset"), SHAPES.values(), ids=SHAPES)
def test_a_diagonal(shape, offset):
    x = torch.randn(shape, dtype=torch.float64)
    source = torch.randn_like(x.diagonal(offset, -2, -1))
    torch.testing.assert_close(on_a_diagonal(x, source, offset), on_a_diagonal.reference(x, source, offset))
