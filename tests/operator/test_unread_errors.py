"""What a function computes and does not use: errors that it raises are raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import opwright
from tests.suite.nights import mostly_at_night

GOOD, BAD = torch.tensor([1, 2]), torch.tensor([1, 5])
# With good indices (or divisors) nothing is raised, with bad ones something is.
UNREAD: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "index": lambda x, i: x[i],
    "indices": lambda x, i: x[i, i],
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "embedding": lambda x, i: functional.embedding(i, x),
    "index_select": lambda x, i: x.index_select(1, i),
    "take": lambda x, i: x.take(i * 2),
    "scatter": lambda x, i: x.new_zeros(3).scatter(0, i, x[0]),
    "scatter_add": lambda x, i: x.new_zeros(3).scatter_add(0, i, x[0]),
    "index_add": lambda x, i: x.new_zeros(3).index_add(0, i, x[0, :2]),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "index_put": lambda x, i: (x * 1).index_put_((i,), x[0]),
    "setting": lambda x, i: (x * 1).__setitem__(i, 2.0),
    "rows of a result": lambda x, i: (x @ x.t())[i],
    "quotient": lambda x, i: i // (i - 5),
    "quotient of numbers": lambda x, i: i // (0 if int(i.dim()) == 2 else 1),
    "remainder": lambda x, i: i % (5 - i),
    "remainder in C": lambda x, i: torch.fmod(i, i - 5),
    "power": lambda x, i: i ** (4 - i),
    "one hot": lambda x, i: functional.one_hot(i, 4),
    "loss": lambda x, i: functional.cross_entropy(x[:2], i),
    "inverse": lambda x, i: torch.linalg.inv((i - 5.0).diag()),
    "choice of what is chosen": lambda x, i: x[i].softmax(-1)[:, i],
}

CASES = [(what, gradient) for what in UNREAD for gradient in (False, True)]
WITH_GRADIENTS = ("index", "setting", "loss", "power")
AT_NIGHT = ("one hot", "scatter", "rows of a result", "take", "index_select", "remainder in C", "quotient of numbers")
BY_DAY = [(what, yes) for what, yes in CASES if (what in WITH_GRADIENTS if yes else what not in AT_NIGHT)]


@pytest.mark.falls_back
@pytest.mark.built_together
@pytest.mark.parametrize(("what", "gradient"), mostly_at_night(CASES, by_day=BY_DAY))
def test_its_errors_are_raised(what: str, gradient: bool) -> None:
    compute = UNREAD[what]

    def unread(x: Tensor, i: Tensor) -> Tensor:
        compute(x, i)
        return x.exp() + 1

    operator = opwright.operator(unread)
    x = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), requires_grad=gradient)
    torch.testing.assert_close(operator(x, GOOD), unread(x, GOOD))
    assert operator.last_rung == "cpp"
    expected = outcome(unread, x, BAD)
    for _ in range(2):
        assert outcome(operator, x, BAD) == expected
    torch.testing.assert_close(operator(x, GOOD), unread(x, GOOD))


def outcome(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, i: Tensor) -> Any:
    try:
        return tuple(function(x, i).shape)
    except (RuntimeError, IndexError) as error:
        return type(error), str(error)


def test_a_gather_that_nobody_reads_is_a_check() -> None:
    def unread(x: Tensor, i: Tensor) -> Tensor:
        x[i]
        return x.exp()

    operator = opwright.operator(unread)
    operator(torch.randn(3, 3), GOOD)
    source = operator.source("cpp")
    assert "is_within(i.at" in source
    assert "call" not in source
    assert "i[" not in source


def test_a_derivative_does_not_compute_what_the_forward_pass_has_checked() -> None:
    def chosen(x: Tensor, i: Tensor) -> Tensor:
        return x[i] * 2

    operator = opwright.operator(chosen)
    operator(torch.randn(3, 3, requires_grad=True), GOOD)
    forward, _, backward = operator.source("cpp").partition("chosen_backward")
    assert "is_within(i.at" in forward
    assert "is_within(i.at" not in backward


@torch.library.custom_op("unread_errors::ensure_positive", mutates_args=())
def _ensure_positive(i: Tensor) -> Tensor:
    if bool((i < 0).any()):
        raise ValueError("an index is negative")
    return i.clone()


@_ensure_positive.register_fake
def _(i: Tensor) -> Tensor:
    return torch.empty_like(i)


def test_an_operation_of_others_is_run_where_nobody_reads_its_result() -> None:
    def unread(x: Tensor, i: Tensor) -> Tensor:
        torch.ops.unread_errors.ensure_positive(i)
        return x.exp() + 1

    operator = opwright.operator(unread, name="opwright::unread_operation")
    x = torch.randn(3, 3)
    torch.testing.assert_close(operator(x, GOOD), unread(x, GOOD))
    assert operator.last_rung == "cpp"
    with pytest.raises(ValueError, match="an index is negative"):
        operator(x, -GOOD)
