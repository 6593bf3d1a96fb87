from __future__ import annotations

import pytest
import torch

from opwright.ir.program import Kernel
from opwright.passes.buffers.join_padded import join_padded
from tests.derived import lowered_joint, specs_of
from tests.passes.programs import steps

X = torch.zeros(4, 6, requires_grad=True)
READS = {
    "each part once": (lambda x, y: x[0] * 2 + x[1].sin() * x[3] + y[0], 4),
    "a part twice": (lambda x, y: x[0] * 2 + x[1].sin() * x[3] + x[0].exp() + y[0], 4),
    "some with gaps": (lambda x, y: x[0].sin() + x[3].cos() + y[0], 3),
    "parts that overlap": (lambda x, y: x[0:2].sin() + x[1:3].cos() + y[0:2], None),
    "along two dimensions": (lambda x, y: x[0].sin() + x[:, 2].sum() + y[0], None),
}


@pytest.mark.parametrize(("function", "pieces"), READS.values(), ids=READS)
def test_gradients(function, pieces):
    _, program = lowered_joint(function, specs_of("xy", [X, X.detach()]))
    joined = join_padded(program)
    if pieces is None:
        assert joined.steps == program.steps
        return
    steps(joined)
    stores = [s for step in joined.steps if isinstance(step, Kernel) for s in step.stores if s.buffer == "grad_x"]
    assert len(stores) == pieces
