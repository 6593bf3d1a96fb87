"""Outer products become element-wise work; a size that may differ from one leaves a product what it is."""

from __future__ import annotations

import pytest
import torch

from opwright.api.operator import Operator
from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.trace import trace

CASES = {
    "mm, inner size one": (((5, 1), (1, 4)), torch.matmul, {"aten.mul.Tensor", "aten.clone.default"}),
    "bmm, inner size one": (((2, 5, 1), (2, 1, 4)), torch.bmm, {"aten.mul.Tensor", "aten.clone.default"}),
    "complex": (((5, 1), (1, 4)), lambda x, y: torch.mm(x + 1j, y + 1j), None),
    "mm": (((5, 3), (3, 4)), torch.mm, {"aten.mm.default"}),
    "one row": (((1, 3), (3, 4)), torch.mm, {"aten.mm.default"}),
}


@pytest.mark.parametrize(("shapes", "function", "operations"), CASES.values(), ids=CASES)
def test_products(shapes, function, operations):
    specs = [TensorSpec(name, torch.float64, shape) for name, shape in zip("xy", shapes, strict=True)]
    graph, _ = trace(function, specs)
    called = {str(node.target) for node in graph.fx.nodes if node.op == "call_function"}
    assert "aten.mm.default" not in called if operations is None else called == operations


def test_they_lie_row_by_row_so_that_numbers_can_be_drawn_beside_them():
    def dropped(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(torch.bmm(x.permute(1, 2, 0), y.permute(1, 0, 2)), 0.5, training=True)

    operator = Operator(dropped)
    given = torch.randn(1, 2, 5), torch.randn(1, 2, 4)
    torch.manual_seed(0)
    found = operator(*given)
    torch.manual_seed(0)
    torch.testing.assert_close(found, dropped(*given))
    assert operator.last_rung == "cpp"
