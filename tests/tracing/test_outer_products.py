"""Outer products become element-wise work; a size that may differ from one leaves a product what it is."""

from __future__ import annotations

import pytest
import torch

from opwright.tracing.specs import TensorSpec
from opwright.tracing.trace import trace

CASES = {
    "mm, inner size one": (((5, 1), (1, 4)), torch.matmul, {"aten.mul.Tensor"}),
    "bmm, inner size one": (((2, 5, 1), (2, 1, 4)), torch.bmm, {"aten.mul.Tensor"}),
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
