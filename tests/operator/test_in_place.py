"""Temporaries that a function modifies in place, whole or through views: forward and gradients against eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.suite.nights import mostly_at_night

SIGNATURE = Signature((Parameter("x", Kind.TENSOR, False),), 1)


def fill_a_slice(x: Tensor) -> Tensor:
    y = torch.zeros(5, 6)
    y[1:4] = x[:3]
    y[0, 0] = 7
    return y * 2


def change_what_two_views_show(x: Tensor) -> Tensor:
    y = x * 2
    column, row = y[:, 1], y.t()[0]
    column.mul_(3)
    row.add_(1)
    return y + column.unsqueeze(1)


def change_a_flat_view(x: Tensor) -> Tensor:
    y = x.clone()
    y.view(-1)[3:].sigmoid_()
    return y


def clear_the_diagonal(x: Tensor) -> Tensor:
    y = x * 1
    y.diagonal().zero_()
    return y.cumsum(0)


def fill_the_diagonal(x: Tensor) -> Tensor:
    y = (x @ x.mT).fill_diagonal_(-torch.inf)
    cube = (x[:4, :4, None] * torch.ones(4)).fill_diagonal_(2.5)
    return y.softmax(-1) @ x * cube.sum()


def change_what_is_detached(x: Tensor) -> Tensor:
    y = x * 1
    z = y.detach()
    y.pow_(2)
    return y + z


def reshape_in_place(x: Tensor) -> Tensor:
    y = x * 1
    y.unsqueeze_(0)
    y.mul_(2)
    return y.sum(1)


def reshape_what_was_changed(x: Tensor) -> Tensor:
    y = x[:, :1] + 1
    z = y + x
    y.mul_(2)
    y.squeeze_(1)
    return z * y.unsqueeze(1)


def reshape_what_the_library_made(x: Tensor) -> Tensor:
    y = x[:, :1].cumsum(0)
    z = y * 2
    y.add_(3)
    y.squeeze_(1)
    return z.squeeze(1) * y


def reshape_one_of_several(x: Tensor) -> Tensor:
    y, _ = x.sort(1)
    z = y * 2
    y.add_(3)
    y.t_()
    return z * y.t()


def permute_and_fill(x: Tensor) -> Tensor:
    y = (x + 1).reshape(2, 2, -1)
    y.permute(2, 0, 1)[0].fill_(3)
    return y * y


FUNCTIONS = (
    *(fill_a_slice, change_what_two_views_show, change_a_flat_view, clear_the_diagonal, change_what_is_detached),
    *(
        reshape_in_place,
        reshape_what_was_changed,
        reshape_what_the_library_made,
        reshape_one_of_several,
        permute_and_fill,
        fill_the_diagonal,
    ),
)


BY_DAY = (change_what_two_views_show, change_what_is_detached, reshape_what_was_changed, reshape_one_of_several)


def output_and_gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    leaf = x.detach().requires_grad_()
    output = function(leaf)
    (gradient,) = torch.autograd.grad((output * output).sum(), leaf)
    return output.detach(), gradient


@pytest.mark.parametrize("function", mostly_at_night(FUNCTIONS, by_day=BY_DAY), ids=lambda function: function.__name__)
def test_as_in_eager(function: Callable[[Tensor], Tensor]) -> None:
    operator = Operator(function, signature=SIGNATURE)
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(output_and_gradient(operator, x), output_and_gradient(function, x))
    assert operator.last_rung == "cpp"


def change_what_may_be_a_copy(x: Tensor) -> Tensor:
    y = x * 1
    y.reshape(-1)[3:].sigmoid_()
    return y


def change_what_may_be_another(x: Tensor) -> Tensor:
    y = x * 1
    y.contiguous().mul_(2)
    return y


def set_what_may_be_another(x: Tensor) -> Tensor:
    y = x * 1
    y.contiguous()[0] = 100.0
    return y


def fill_what_may_be_a_copy(x: Tensor) -> Tensor:
    y = x * 1
    y.flatten().masked_fill_(x.flatten() > 0, 2.0)
    return y


def write_a_result_into_what_may_be_a_copy(x: Tensor) -> Tensor:
    y = x * 1
    with torch.no_grad():
        torch.sin(y.detach().reshape(-1) + 1, out=y.detach().reshape(-1))
    return y


def change_by_a_function_of_torch(x: Tensor) -> Tensor:
    y = x * 1
    torch.nn.functional.elu_(y.contiguous())
    return y * 2


OF_WHAT_MAY_BE_SHARED = (
    *(change_what_may_be_a_copy, change_what_may_be_another, set_what_may_be_another, fill_what_may_be_a_copy),
    *(write_a_result_into_what_may_be_a_copy, change_by_a_function_of_torch),
)


@pytest.mark.falls_back
@pytest.mark.parametrize("function", OF_WHAT_MAY_BE_SHARED)
def test_what_shares_memory_may_depend_on_the_layout(function: Callable[[Tensor], Tensor]) -> None:
    operator = Operator(function, signature=SIGNATURE)
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    for layout, rung in ((x, "cpp"), (x.t().contiguous().t(), "composed"), (x, "cpp")):
        torch.testing.assert_close(output_and_gradient(operator, layout), output_and_gradient(function, layout))
        assert operator.last_rung == rung


@pytest.mark.falls_back
@pytest.mark.parametrize("convert", [torch.Tensor.to, torch.Tensor.float, torch.Tensor.contiguous])
def test_conversions_to_channels_last_may_be_copies(convert: Callable[..., Tensor]) -> None:
    def change_what_was_converted(x: Tensor) -> Tensor:
        y = x * 1
        convert(y, memory_format=torch.channels_last).mul_(2)
        return y

    operator = Operator(change_what_was_converted, signature=SIGNATURE)
    x = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    for layout in (x, x.contiguous(memory_format=torch.channels_last), x.transpose(2, 3), x):
        torch.testing.assert_close(operator(layout), change_what_was_converted(layout))
    assert operator.last_rung == "cpp"


def clear_the_sign(x: Tensor) -> Tensor:
    y = x.clone()
    y.view(torch.int32).bitwise_and_(0x7FFFFFFF)
    return y


def change_halves_of_numbers(x: Tensor) -> Tensor:
    y = x * 2
    y.view(torch.int16)[..., ::2].zero_()
    return y + 1


@pytest.mark.parametrize("function", [clear_the_sign, change_halves_of_numbers])
def test_bits_that_are_changed_as_another_type(function: Callable[[Tensor], Tensor]) -> None:
    operator = Operator(function, signature=SIGNATURE)
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(operator(x), function(x), rtol=0, atol=0)
    assert operator.last_rung == "cpp"


def add_rows_to_those_below(x: Tensor) -> Tensor:
    y = x * 1
    y[1:].add_(y[:-1])
    return y


def add_columns_to_those_beside(x: Tensor) -> Tensor:
    y = x * 1
    y[:, 1:] += y[:, :-1]
    return y


def copy_the_transposed(x: Tensor) -> Tensor:
    y = x[:, :4] * 1
    return y.copy_(y.t())


def multiply_by_a_row(x: Tensor) -> Tensor:
    y = x * 1
    return y.mul_(y[0])


@pytest.mark.falls_back
@pytest.mark.parametrize(
    "function", [add_rows_to_those_below, add_columns_to_those_beside, copy_the_transposed, multiply_by_a_row]
)
def test_what_reads_its_own_memory_is_the_functions(function: Callable[[Tensor], Tensor]) -> None:
    operator = Operator(function, signature=SIGNATURE)
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    found = []
    for call in (function, operator):
        try:
            found.append(call(x))
        except RuntimeError as error:  # most are refused by eager
            found.append(str(error))
    assert found[0] == found[1] if isinstance(found[0], str) else torch.equal(*found)
    assert operator.last_rung == "composed"


def add_halves(x: Tensor) -> Tensor:
    y = x * 1
    y[:, :3] += y[:, 3:]
    y[0] -= y[1]
    y[:, ::2].mul_(y[:, 1::2])
    y[:, 0].mul_(y[:, 1])
    return y.add_(y)


def test_parts_that_have_nothing_in_common_may_be_added() -> None:
    operator = Operator(add_halves, signature=SIGNATURE)
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(operator(x), add_halves(x))
    assert operator.last_rung == "cpp"
