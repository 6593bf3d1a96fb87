from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from opwright.ir.program import Call
from opwright.ir.verifier import verify
from opwright.passes.buffers.indexed_loads import indexed_loads
from opwright.passes.order import optimize
from tests.derived import run
from tests.passes.programs import lowered_from, steps, text

TABLE, CUBE = torch.arange(20.0).reshape(5, 4), torch.arange(24.0).reshape(2, 3, 4)
LIST, GRID = torch.tensor([3, 0, 1]), torch.tensor([[1, 0, 3, 2], [2, 2, 0, 1]])
Reference = Callable[..., torch.Tensor]

PICKED: dict[str, tuple[Reference, tuple[torch.Tensor, torch.Tensor]]] = {
    "embedding": (lambda x, y: functional.embedding(y, x) * 2, (TABLE, GRID)),
    "index_select": (lambda x, y: x.index_select(-1, y) * 2, (TABLE, LIST)),
    "gather": (lambda x, y: x.gather(1, y) * 2, (TABLE, GRID)),
    "gather along the first": (lambda x, y: x.gather(0, y) * 2, (TABLE, GRID)),
    "from either end": (lambda x, y: x[y - 4] * 2, (TABLE, LIST)),
    "in the middle": (lambda x, y: x[:, y[:2] - 1] * 2, (CUBE, torch.tensor([1, 2, 0]))),
    "32 bits": (lambda x, y: x[y.int()] * 2, (TABLE, LIST)),
    "a matrix of indices": (lambda x, y: x[:, y] * 2, (TABLE, GRID)),
    "one of each row": (lambda x, y: x[torch.arange(x.shape[0]), y] * 2, (TABLE[:3], LIST)),
    "one of each first row": (lambda x, y: x[torch.arange(y.shape[0]), y] * 2, (TABLE, LIST)),
    "one of each column": (lambda x, y: x[y, torch.arange(3)] * 2, (TABLE[:, :3], LIST)),
    "apart": (lambda x, y: x[torch.arange(2), :, y[:2]] * 2, (CUBE, LIST)),
    "a view of a table": (lambda x, y: x.t()[1::2].index_select(1, y) * 2, (TABLE, LIST)),
    "views of indices": (lambda x, y: x.gather(1, y[:, :1].expand(-1, 3)) * 2, (TABLE, GRID)),
    "rows in another order": (lambda x, y: x[y].transpose(0, 1) * 2, (TABLE, GRID)),
    "one of a computed table": (lambda x, y: torch.log_softmax(x, 1).gather(1, y[:, :1]), (TABLE, GRID)),
    "reduced": (lambda x, y: functional.softmax(x[y], 1), (TABLE, LIST)),
    "reduced columns": (lambda x, y: x[y].sum(0), (TABLE, LIST)),
    "rows used along a new axis": (lambda x, y: x[y].unsqueeze(0) * x.unsqueeze(1), (TABLE, LIST)),
    "a short last axis": (lambda x, y: x[y] * 2, (TABLE[:, :3].contiguous(), LIST)),
}
KEPT: dict[str, tuple[Reference, tuple[torch.Tensor, torch.Tensor]]] = {
    "nothing is computed from them": (lambda x, y: x[y], (TABLE, LIST)),
    "a product reads them": (lambda x, y: x[y] @ x.t(), (TABLE, LIST)),
    "two tensors of indices": (lambda x, y: x[y, y] * 2, (TABLE, LIST)),
    "many of a computed table": (lambda x, y: torch.tanh(x)[y] * 2, (TABLE, LIST)),
    "elements used along a new axis": (lambda x, y: x[:, y].unsqueeze(1) * x[:, :3].unsqueeze(0), (TABLE, LIST)),
    "rows gone over across": (lambda x, y: x[y].t() * 2, (TABLE, LIST)),
    "no dimension": (lambda x, y: x.index_select(0, y[0]) * 2, (TABLE, LIST)),
}


def is_lookup(step: object) -> bool:
    return isinstance(step, Call) and step.function in (
        "aten::embedding",
        "aten::index_select",
        "aten::gather",
        "aten::index",
    )


@pytest.mark.parametrize("case", PICKED)
def test_gathered(case: str) -> None:
    reference, arguments = PICKED[case]
    program = optimize(lowered_from(reference, *arguments), "cpp")
    assert "index " in steps(program)
    assert not any(map(is_lookup, program.steps))
    (made,) = run(program, arguments)
    torch.testing.assert_close(made, reference(*arguments))


@pytest.mark.parametrize("case", KEPT)
def test_kept(case: str) -> None:
    reference, arguments = KEPT[case]
    program = lowered_from(reference, *arguments)
    assert any(map(is_lookup, program.steps))
    assert indexed_loads(program) == program


def test_listing() -> None:
    reference, arguments = PICKED["embedding"]
    assert steps(optimize(lowered_from(reference, *arguments), "cpp")) == text(
        """
        check 0 <= y[d0, d1] < x_size_0 over [y_size_0, y_size_1]
        kernel output_0 over i0 < y_size_0, i1 < y_size_1, i2 < x_size_1
          new output_0: float32[y_size_0, y_size_1, x_size_1]
          index y_index < x_size_0 = y[i0, i1]
          let x = x[y_index, i2]
          output_0[i0, i1, i2] = x * 2.0
        """
    )


@pytest.mark.parametrize("second", [lambda e, y: e[y[:2]], lambda e, y: (e * 2).gather(0, y[:1].unsqueeze(1))])
def test_of_what_is_gathered_elements_are_copied(second: Reference) -> None:
    def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rows = x[y]
        return second(rows, y).exp().sum() + rows

    arguments = TABLE[:, :3] / 20, LIST.clamp(max=2)
    program = optimize(lowered_from(reference, *arguments), "cpp")
    verify(program)
    assert sum(map(is_lookup, program.steps)) == 1
    torch.testing.assert_close(*run(program, arguments), reference(*arguments))


def test_a_loss_is_one_kernel() -> None:
    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return -torch.log_softmax(x, -1).gather(1, y.unsqueeze(1)).squeeze(1)

    listing = steps(optimize(lowered_from(loss, TABLE[:3], LIST), "cpp"))
    assert listing.count("kernel ") == 1
    assert "call " not in listing


def test_indices_out_of_range_are_refused() -> None:
    reference, (table, index) = PICKED["index_select"]
    program = optimize(lowered_from(reference, table, index), "cpp")
    for wrong in (-1, 4):
        with pytest.raises(ValueError, match="y is not from 0 to below x_size_1"):
            run(program, [table, torch.tensor([0, wrong, 1])])


@pytest.mark.parametrize(
    "gather", [lambda x, y: x[:, :3][y.flatten()], lambda x, y: x.gather(1, y[:, :3])], ids=["a row", "of each row"]
)
def test_where_a_short_axis_is_written_out(gather: Reference) -> None:
    def reference(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gathered = gather(x, y)
        return gathered @ x[:3, :3], gathered * x[0, :3]

    arguments = TABLE, GRID
    program = optimize(lowered_from(reference, *arguments), "cpp")
    verify(program)
    assert not any(map(is_lookup, program.steps))
    for made, expected in zip(run(program, arguments), reference(*arguments), strict=True):
        torch.testing.assert_close(made, expected)
