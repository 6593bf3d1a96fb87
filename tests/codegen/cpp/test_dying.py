"""Which results take the memory of a value that is needed no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from opwright.codegen.cpp.dying import memory_of_the_dying
from opwright.passes.order import optimize
from tests.passes.programs import lowered_from

X = torch.randn(4, 4)


def column(product: Tensor) -> Tensor:
    return product[:, :1] + product


TAKEN: dict[str, Callable[[Tensor, Tensor], object]] = {
    "of a product": lambda x, y: torch.tanh(x @ y),
    "beside other arguments": lambda x, y: torch.tanh(x @ y) * y.mT + x,
    "of one of two products": lambda x, y: (x @ y) * (y @ x),
    "of what a kernel computed": lambda x, y: torch.exp(x.sum(0)),
}
KEPT: dict[str, Callable[[Tensor, Tensor], object]] = {
    "an argument": lambda x, y: torch.tanh(x) * y,
    "a result": lambda x, y: (lambda product: (product, torch.tanh(product)))(x @ y),
    "read later": lambda x, y: (lambda product: torch.tanh(product) @ (product @ x))(x @ y),
    "seen through a view": lambda x, y: torch.tanh((x @ y).mT),
    "read at other places too": lambda x, y: column(x @ y),
    "read by rows": lambda x, y: torch.softmax(x @ y, -1),
    "of another dtype": lambda x, y: (x @ y).double() + 1,
    "of fewer elements": lambda x, y: (x @ y[:, :1]) + y,
    "what may lie in an argument's memory": lambda x, y: torch.tanh(torch.linalg.inv(x)) * y,
}


@pytest.mark.parametrize("reference", [*TAKEN.values(), *KEPT.values()], ids=[*TAKEN, *KEPT])
def test_memory_is_taken_where_nobody_misses_it(reference: Callable[[Tensor, Tensor], object]) -> None:
    program = optimize(lowered_from(reference, X, X), "cpp")
    assert len(memory_of_the_dying(program)) == (reference in TAKEN.values()), program
