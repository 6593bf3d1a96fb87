"""Elements that indices gather: in every layout and dtype, out of range, with derivatives and under transforms."""

import pytest
import torch
from torch.nn import functional

import opwright
from tests.operator import against_eager
from tests.operator.against_eager import assert_as_eager, variants
from tests.suite.nights import mostly_at_night


@opwright.operator
def looked_up(table: torch.Tensor, ids: torch.Tensor):
    return functional.embedding(ids, table, padding_idx=1) * table[0] + 1


@opwright.operator
def columns(x: torch.Tensor, index: torch.Tensor):
    return torch.sin(x[:, index])


@opwright.operator
def gathered(x: torch.Tensor, index: torch.Tensor):
    return x.gather(1, index) * x


@opwright.operator
def one_of_each_row(x: torch.Tensor, index: torch.Tensor):
    return x[torch.arange(x.shape[0]), index] ** 2


@opwright.operator
def loss(x: torch.Tensor, target: torch.Tensor):
    return -torch.log_softmax(x, -1).gather(1, target.unsqueeze(1)).squeeze(1)


@opwright.operator
def normalized(table: torch.Tensor, ids: torch.Tensor):
    return functional.layer_norm(functional.embedding(ids, table), table.shape[1:])


@opwright.operator
def normalized_in_two_axes(x: torch.Tensor, ids: torch.Tensor):
    rows = x.index_select(1, ids)
    return functional.layer_norm(rows, rows.shape[1:])


@opwright.operator
def reduced_loads(x: torch.Tensor, index: torch.Tensor):
    chosen = x.gather(1, index)
    return chosen.sum(1), (chosen * 2).sum(0), chosen.amax()


@opwright.operator
def beginning(table: torch.Tensor, ids: torch.Tensor):
    return functional.embedding(ids, table)[:2] * 2


@opwright.operator
def copied(x: torch.Tensor, index: torch.Tensor):
    return torch.cat([x[index], x.index_select(0, index.flatten())])


@opwright.operator
def numbered_elements(x: torch.Tensor, index: torch.Tensor):
    return (x / torch.arange(1, x.shape[1] + 1)).gather(1, index)


@opwright.operator
def numbered_columns(x: torch.Tensor, index: torch.Tensor):
    return (x * torch.arange(x.shape[1] - 1, -1, -1))[:, index] + torch.arange(index.shape[0])


@opwright.operator
def numbered_of_each_row(x: torch.Tensor, index: torch.Tensor):
    return (x + 2 * torch.arange(x.shape[1]))[torch.arange(x.shape[0]), index]


@opwright.operator
def numbered_rows(x: torch.Tensor, index: torch.Tensor):
    rows = (x * torch.arange(x.shape[2]) + torch.arange(x.shape[1])[:, None])[torch.arange(x.shape[0]), index]
    return rows + 1, functional.layer_norm(rows, rows.shape[1:]), rows.sum(1), rows.sum(0), rows.amax()


@opwright.operator
def numbered_planes(x: torch.Tensor, index: torch.Tensor):
    planes = (x + torch.arange(x.shape[1])[:, None, None])[torch.arange(x.shape[0]), index]
    return functional.layer_norm(planes, planes.shape[1:]), torch.softmax(planes.mT, -1)


def random(*shape, **given):
    """Wide numbers: normalized, what is the same in a whole row is rounding errors alone."""
    return against_eager.random(*shape, dtype=torch.float64, **given)


def numbers(*shape, high, dtype=torch.int64, low=0):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(3)).to(dtype)


CASES = {
    "rows of a table": (looked_up, (7, 5), (4, 3), 0, 7),
    "columns from either end": (columns, (4, 6), (9,), -6, 6),
    "elements of rows": (gathered, (4, 6), (4, 6), 0, 6),
    "one of each row": (one_of_each_row, (5, 6), (5,), -6, 6),
    "a loss": (loss, (5, 6), (5,), 0, 6),
    "normalized rows": (normalized, (7, 5), (4, 3), 0, 7),
    "normalized in two axes": (normalized_in_two_axes, (3, 7, 5), (4,), 0, 7),
    "reductions": (reduced_loads, (5, 6), (5, 6), 0, 6),
    "numbered elements": (numbered_elements, (4, 6), (4, 1), 0, 6),
    "numbered columns from either end": (numbered_columns, (4, 6), (9,), -6, 6),
    "one of each row, numbered": (numbered_of_each_row, (5, 6), (5,), -6, 6),
    "numbered rows": (numbered_rows, (4, 5, 6), (4,), -5, 5),
    "numbered planes": (numbered_planes, (3, 4, 5, 6), (3,), -4, 4),
}


@pytest.mark.parametrize(
    "case",
    mostly_at_night(
        CASES, by_day=("columns from either end", "normalized rows", "one of each row, numbered", "numbered rows")
    ),
)
def test_every_layout(case):
    operator, shape, indexed_by, low, high = CASES[case]
    table, index = random(*shape), numbers(*indexed_by, low=low, high=high)
    tables = {
        "row-major": table,
        "transposed": table.detach().transpose(-1, 0).contiguous().transpose(-1, 0).requires_grad_(),
        "every other": torch.stack([table.detach()] * 2, -1)[..., 1].requires_grad_(),
        "one row expanded": table.detach()[:1].expand(shape).requires_grad_(),
        "one column expanded": table.detach()[..., :1].expand(shape).requires_grad_(),
    }
    indices = {
        "row-major": index,
        "reversed axes": index.permute(*range(index.ndim)[::-1]).contiguous().permute(*range(index.ndim)[::-1]),
        "every other": torch.stack([index] * 2, -1)[..., 1],
        "one expanded": index[:1].expand(indexed_by),
    }
    for layout in tables:
        assert_as_eager(operator, tables[layout], index, order=1)
    for layout in indices:
        assert_as_eager(operator, table, indices[layout], order=1)
    permuted = [layouts for layouts in (tables["transposed"], indices["reversed axes"]) if not layouts.is_contiguous()]
    assert variants(operator) == 1 + len(permuted)


@pytest.mark.parametrize(
    "case",
    ["rows of a table", *(pytest.param(case, marks=pytest.mark.nightly) for case in list(CASES)[1:5])],
)
def test_second_derivatives(case):
    operator, shape, indexed_by, low, high = CASES[case]
    table, index = random(*shape), numbers(*indexed_by, low=low, high=high)
    assert_as_eager(operator, table, index, order=2)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("bad", ["below", "above"])
def test_out_of_range(case, bad):
    operator, shape, indexed_by, low, high = CASES[case]
    index = numbers(*indexed_by, low=low, high=high)
    index.view(-1)[-1] = low - 1 if bad == "below" else high
    raised = []
    for function in (operator.reference, operator):
        with pytest.raises((IndexError, RuntimeError)) as caught:
            function(random(*shape), index)
        raised.append((caught.type, str(caught.value)))
    assert raised[0] == raised[1]


@pytest.mark.falls_back
def test_an_index_that_nothing_is_computed_for_is_checked_too():
    table, ids = random(5, 3), torch.tensor([0, 1, 2, 9])
    for function in (beginning.reference, beginning):
        with pytest.raises(IndexError, match="out of range"):
            function(table, ids)
    assert_as_eager(beginning, table, ids.clamp(max=4))


def test_a_call_after_one_out_of_range_is_served():
    x = random(4, 6)
    with pytest.raises(IndexError):
        columns(x, torch.tensor([6, 1]))
    assert_as_eager(columns, x, torch.tensor([5, 1]), order=1)


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.nightly), 2, 256, 257, 2000])
def test_indices_of_every_length(size):
    table = random(7, 5)
    assert_as_eager(normalized, table, numbers(size, 3, high=7), order=1)
    assert_as_eager(columns, table, numbers(size, low=-5, high=5), order=1)


def test_no_indices_and_no_table():
    assert_as_eager(columns, random(4, 6), numbers(0, high=6), rung="composed", order=1)
    for function in (columns.reference, columns):
        with pytest.raises(IndexError):
            function(torch.zeros(4, 0, dtype=torch.float64), torch.tensor([0, 0]))


WIDTHS = [(torch.bfloat16, torch.int64), (torch.complex128, torch.int32), (torch.bool, torch.int64)]


@pytest.mark.parametrize(("dtype", "kind"), WIDTHS, ids=str)
def test_every_width(dtype, kind):
    x = (random(6, 5, gradient=False) * 3).to(dtype)
    assert_as_eager(copied, x, numbers(4, high=6, dtype=kind), order=0)


@pytest.mark.falls_back
def test_a_mask_is_no_index():
    x, mask = random(6, 5, gradient=False), torch.arange(6) % 2 == 0
    torch.testing.assert_close(opwright.operator(copied_by_mask)(x, mask), copied_by_mask(x, mask))


def copied_by_mask(x: torch.Tensor, mask: torch.Tensor):
    return x[mask] * 2


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by torch's own decompositions
@pytest.mark.parametrize("case", ["elements of rows", pytest.param("rows of a table", marks=pytest.mark.nightly)])
def test_under_transforms(case):
    operator, shape, indexed_by, low, high = CASES[case]
    table, index = random(*shape, gradient=False), numbers(*indexed_by, low=low, high=high)
    found = []
    for function in (operator.reference, operator):
        out, tangent = torch.func.jvp(lambda x, f=function: f(x, index), (table,), (table * 2 + 1,))
        mapped = torch.vmap(function, (None, 0))(table, torch.stack([index, index.flip(0)]))
        both = torch.vmap(function)(torch.stack([table, table + 1]), torch.stack([index, index.flip(0)]))
        gradient = torch.func.grad(lambda x, f=function: f(x, index).sin().sum())(table)
        found.append((out, tangent, mapped, both, gradient))
    torch.testing.assert_close(*found)


def test_long_rows_are_reduced_in_pieces():
    x = random(1, 100_000)
    assert_as_eager(reduced_loads, x.expand(2, -1), numbers(2, 100_000, high=100_000), order=1)
