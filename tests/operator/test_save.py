"""`save=` as a budget: what is kept stays within it, results and gradients stay right, and explain tells."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import opwright
from opwright.errors import SaveRefused
from tests.kept import kept_bytes
from tests.operator.against_eager import assert_as_eager, random
from tests.suite.nights import mostly_at_night


def network(x: Tensor, first: Tensor, second: Tensor, third: Tensor) -> Tensor:
    hidden = torch.relu(torch.tanh(x @ first) @ second)
    return torch.softmax(hidden @ third, -1).square().sum(-1)


def with_dropout(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return torch.relu(functional.dropout(torch.tanh(x @ first), 0.3) @ second)


def convolved(x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return functional.batch_norm(functional.conv2d(x, weight), None, None, scale, shift, training=True)


def double(*sizes: int) -> Tensor:
    return random(*sizes, dtype=torch.float64)


ARGUMENTS = double(64, 32), double(32, 48), double(48, 128), double(128, 16)
SAVED = {"x @ first": 64 * 48 * 8, "… @ second": 64 * 128 * 8, "softmax": 64 * 16 * 8}
# From the most to the least: the budget, and what it keeps. Dropping the second product costs the most work.
BUDGETS = {
    "1 GB": sum(SAVED.values()),  # as "auto"
    0.8: SAVED["… @ second"] + SAVED["softmax"],
    0.5: SAVED["x @ first"] + SAVED["softmax"],
    30_000: SAVED["softmax"],  # which spares more work than the first product
    0.1: SAVED["softmax"],
    0: 0,
    "inputs": 0,
}


@pytest.mark.parametrize("save", mostly_at_night(BUDGETS, by_day=(0.8, 30_000, "inputs")), ids=str)
def test_a_budget_is_kept_and_gradients_are_right(save: float | str) -> None:
    operator = opwright.operator(network, save=save, name="budgeted")
    given = [argument.detach().requires_grad_() for argument in ARGUMENTS]
    assert kept_bytes(operator, given) - sum(argument.nbytes for argument in given) == BUDGETS[save]
    assert_as_eager(operator, *given, order=1)


@pytest.mark.nightly
def test_the_second_derivative_under_a_budget() -> None:
    operator = opwright.operator(network, save=0.5, name="budgeted_when_small")  # where the budget keeps others
    small = double(3, 4), double(4, 5), double(5, 6), double(6, 2)
    assert torch.autograd.gradgradcheck(operator, small, fast_mode=True)


def test_bytes_of_half_types_count_what_is_kept_in_float32() -> None:
    given = [argument.detach().bfloat16().requires_grad_() for argument in (double(64, 40), double(40, 64))]
    whole, some = (
        opwright.operator(lambda x, y: torch.softmax(x @ y, -1).sum(-1), save=save) for save in ("auto", 0.5)
    )
    arguments = sum(argument.nbytes for argument in given)
    assert kept_bytes(some, given) - arguments <= 0.5 * (kept_bytes(whole, given) - arguments)


@pytest.mark.parametrize("save", [0, "inputs"])
def test_random_numbers_are_kept_in_any_case(save: float | str) -> None:
    operator = opwright.operator(with_dropout, save=save, name="budgeted_dropout")
    found = []
    for function in (operator, with_dropout):
        torch.manual_seed(0)
        found.append(torch.autograd.grad(function(*ARGUMENTS[:3]).sum(), ARGUMENTS[:3]))
    torch.testing.assert_close(*found)
    assert operator.last_rung == "cpp"


def test_nothing_but_arguments_of_convolution_and_batch_norm() -> None:
    given = random(2, 3, 6, 5), random(4, 3, 3, 3), random(4), random(4)
    operator = opwright.operator(convolved, save="inputs", name="convolved")
    assert kept_bytes(operator, given) <= sum(argument.nbytes for argument in given)
    assert_as_eager(operator, *given, order=1)
    module = opwright.module(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), save="inputs")
    own = sum(parameter.nbytes for parameter in module.parameters())
    assert kept_bytes(module, given[:1]) <= given[0].nbytes + own
    assert module.last_rung == "cpp"


def test_a_module_keeps_its_policy() -> None:
    module = opwright.module(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), save="inputs")
    assert opwright.module(module, save="inputs") is module
    assert type(opwright.module(module))._cut.save == "auto"
    again, arguments = module.__reduce_ex__(2)
    assert type(again(*arguments))._cut.save == "inputs"


def test_kernels_of_different_budgets_are_recorded_apart() -> None:
    operators = [opwright.operator(network, save=save, name="budgeted") for save in ("auto", 0.5, 1, 1.0, "1 kB")]
    keys = {operator._recorded_under(operator._outside.now()) for operator in operators}
    assert None not in keys
    assert len(keys) == len(operators)


def test_explain_tells_what_a_budget_came_to() -> None:
    told = opwright.operator(
        network, save=0.5, name="budgeted", samples=opwright.shapes("64 32", "32 48", "48 128", "128 16")
    ).explain()
    assert 'beside the arguments 16.4 kB of the 49.2 kB that save="auto" keeps; the budget is 24.6 kB' in told
    assert "not kept: mm (32.8 kB); backward computes it again, in 786,432 operations" in told  # 2 · 64 · 48 · 128


@pytest.mark.parametrize("save", ["0.5", "some", "5 apples", 1.5, -0.1, float("nan"), -1, True, None], ids=str)
def test_what_is_no_budget_is_refused(save: object) -> None:
    with pytest.raises(SaveRefused, match="is neither a word nor a budget") as raised:
        opwright.operator(network, save=save)
    assert 'such as 65536 or "64 MiB"' in raised.value.hint
    assert raised.value.place.file == __file__
