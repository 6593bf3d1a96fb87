"""Indices and values that torch's kernels refuse or convert, where its decompositions do otherwise."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import opwright

X = torch.arange(6.0).reshape(3, 2)


@opwright.operator
def added_at(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
    return torch.index_add(x * 2, 0, index, source, alpha=3) + 1


@opwright.operator
def copied_to(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
    return torch.index_copy(x * 2, 0, index, source) + 1


@pytest.mark.falls_back
@pytest.mark.parametrize("operator", [added_at, copied_to])
def test_negative_positions_are_refused(operator):
    for right in ([0, 2], [1, 0]):
        given = X, torch.tensor(right), torch.ones(2, 2)
        torch.testing.assert_close(operator(*given), operator.reference(*given))
        assert operator.last_rung == "cpp"
    for wrong in ([0, -1], [-3, 1], [0, 3]):
        given = X, torch.tensor(wrong), torch.ones(2, 2)
        with pytest.raises((RuntimeError, IndexError)) as expected:
            operator.reference(*given)
        with pytest.raises(expected.type) as raised:
            operator(*given)
        assert str(raised.value) == str(expected.value)


@opwright.operator
def with_another_row(x: Tensor, row: Tensor) -> Tensor:
    return torch.select_scatter(x + 1, row, 0, 1)


@opwright.operator
def with_another_diagonal(x: Tensor, diagonal: Tensor) -> Tensor:
    return torch.diagonal_scatter(x + 1, diagonal)


@pytest.mark.parametrize("operator", [with_another_row, with_another_diagonal])
def test_what_is_written_takes_the_dtype_of_where_it_is_written(operator):
    x, written = torch.arange(4, dtype=torch.uint8).reshape(2, 2), torch.tensor([300, 1])
    found = operator(x, written)
    assert found.dtype is torch.uint8
    assert torch.equal(found, operator.reference(x, written))
    assert operator.last_rung == "cpp"


@opwright.operator
def sloped(x: Tensor, weight: Tensor) -> Tensor:
    return functional.prelu(x + 1, weight)


@pytest.mark.falls_back
def test_slopes_of_integers_are_refused():
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        sloped(torch.tensor([1, -3]), torch.tensor([2]))
    torch.testing.assert_close(sloped(X - 3, torch.tensor([0.5])), sloped.reference(X - 3, torch.tensor([0.5])))
    assert sloped.last_rung == "cpp"
