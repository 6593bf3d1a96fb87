from __future__ import annotations

import pytest
import torch

from opwright.passes.loops.add_before_reducing import add_before_reducing
from tests.passes.programs import lowered_from, steps

MATRIX = torch.zeros(4, 6)
SUMS = {
    "columns": (lambda x, y: (x.sum(0) + y.sum(0)) + (x * y).sum(0), 1),
    "rows": (lambda x, y: (x + y).sum(-1) + (x * y).sum(-1), 1),
    "columns and rows": (lambda x, y: x[:, 0:4].sum(0) + y.sum(-1), 2),
    "a sum that is read twice": (lambda x, y: (lambda sums: sums + y.sum(0) * sums)(x.sum(0)), 2),
    "with a library call between": (lambda x, y: x.sum(0) + (x.mT @ y)[0:4].sum(0), 2),
    "other reductions": (lambda x, y: x.amax(0) + y.amax(0), 2),
    "integers": (lambda x, y: (x > 0).sum(0) + (y > 0).sum(0), 2),
}


@pytest.mark.parametrize(("function", "left"), SUMS.values(), ids=SUMS)
def test_sums(function, left):
    listing = steps(add_before_reducing(lowered_from(function, MATRIX, MATRIX)))
    assert listing.count("sum of ") + listing.count("maximum of ") == left, listing
