from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from opwright.passes.buffers.accumulate_in_place import accumulate_in_place
from tests.derived import run
from tests.passes.programs import lowered_from, steps

ROWS, LIST = torch.arange(12.0).reshape(3, 4), torch.tensor([3, 0, 3])
Reference = Callable[..., torch.Tensor]

IN_PLACE: dict[str, tuple[str, Reference]] = {
    "rows": ("index_put_", lambda x, y: x.new_zeros(5, 4).index_put((y,), x, accumulate=True)),
    "elements": ("scatter_add_", lambda x, y: x.new_zeros(3, 4).scatter_add(1, y.unsqueeze(1), x)),
}
COPIED: dict[str, Reference] = {
    "an argument": lambda x, y: x.index_put((y.clamp(max=2),), x, accumulate=True),
    "read again": lambda x, y: (lambda z: z.index_put((y,), x, accumulate=True) + z)(x.new_ones(5, 4)),
}


@pytest.mark.parametrize("case", IN_PLACE)
def test_in_place(case: str) -> None:
    called, reference = IN_PLACE[case]
    program = accumulate_in_place(lowered_from(reference, ROWS, LIST))
    assert f"aten::{called}(" in steps(program)
    (made,) = run(program, [ROWS, LIST])
    torch.testing.assert_close(made, reference(ROWS, LIST))


@pytest.mark.parametrize("reference", COPIED.values(), ids=COPIED)
def test_copied(reference: Reference) -> None:
    program = lowered_from(reference, ROWS, LIST)
    assert "aten::index_put(" in steps(program)
    assert accumulate_in_place(program) == program
