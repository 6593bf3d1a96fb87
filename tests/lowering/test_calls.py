"""Library calls: operands of every kind that torch's stable C interface passes, checks that raise, layouts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.built_together

INDEX = [0, 2, 1, 2]

FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "a string": lambda x: torch.scatter_reduce(x, 0, (x > 0).long(), x * 2, "amax"),
    "a string and a number": lambda x: torch.linalg.eigvalsh(x @ x.t(), UPLO="U"),
    "a device": lambda x: x + torch.ones(x.shape, device="cpu"),
    "a memory format": lambda x: torch.clone(x.t(), memory_format=torch.contiguous_format).cumsum(0),
    "a number in a library operation": lambda x: torch.linalg.vector_norm(x, 3, dim=1),
    "results left out": lambda x: torch.sort(x, dim=1)[0] + torch.max(x, 1, keepdim=True)[0],
    "a list of tensors that may be missing": lambda x: x[:, torch.tensor(INDEX)] * 2,
    "a number made from sizes": lambda x: x / (x.shape[0] / x.shape[1]) + x.shape[1] ** 0.5,
    "constants": lambda x: x * torch.tensor(2.5) + torch.tensor([[1.0, 2.0, 3.0, 4.0]]),
    "a range": lambda x: x * torch.arange(x.shape[1]) + torch.arange(1.0, 5.0),
    "a range to look up with": lambda x: x[torch.arange(x.shape[0]).flip(0)] * x.index_select(1, torch.arange(4)),
    "pieces of two buffers": lambda x: torch.cat([x, x * 2]).sum(0) + torch.cat([x, x.exp()], 1).sum(1),
    "membership": lambda x: x * torch.isin(x.round(), torch.arange(2.0)),
    "a loss with a margin": lambda x: functional.multi_margin_loss(x, (x[:, 0] > 0).long() * 2, p=2, margin=0.7),
    "padding": lambda x: functional.pad(x, (1, -2, 3, 0), value=1.5) * 2,
    "a variance": lambda x: torch.var(x, dim=1) + x.std(),
    "rolled": lambda x: x.roll((1, -2), (0, 1)) + x.roll(3),
    "a view by strides": lambda x: (x + 0).as_strided((2, 3), (4, 1), 1) * 2,
    "an operation below the public ones": lambda x: functional.embedding_bag(
        (x * 4).long() % 3, x[:3].contiguous(), mode="sum"
    ),
}


def operator_of(function: Callable[[Tensor], Any], name: str) -> Operator:
    signature = Signature((Parameter("x", Kind.TENSOR, False),), 1)
    return Operator(function, name=name, signature=signature)


def output_and_gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    leaf = x.detach().requires_grad_()
    output = function(leaf)
    return output.detach(), torch.autograd.grad((output * output).sum(), leaf)[0]


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "row-major": lambda x: x,
    "transposed": lambda x: x.t().contiguous().t(),
    "every other column": lambda x: torch.cat([x, x], 1)[:, ::2],
}
CASES = list(itertools.product(FUNCTIONS, LAYOUTS))
BY_DAY = CASES[::10]  # each layout in turn


@pytest.mark.falls_back
@pytest.mark.parametrize(("name", "layout"), mostly_at_night(CASES, BY_DAY))
def test_as_in_eager(name: str, layout: str) -> None:
    operator = operator_of(FUNCTIONS[name], f"call_{[*FUNCTIONS].index(name)}")
    x = LAYOUTS[layout](torch.rand(4, 4, generator=torch.Generator().manual_seed(0)) + 0.1)
    torch.testing.assert_close(output_and_gradient(operator, x), output_and_gradient(FUNCTIONS[name], x))
    assert operator.last_rung == "cpp" or (layout != "row-major" and name == "a view by strides")


def test_a_gradient_that_counts_is_as_exact_as_the_argument() -> None:
    """Where a slope is one or zero, it is so in the argument's dtype."""

    def loss(x: Tensor) -> Tensor:
        return functional.multi_margin_loss(x, torch.tensor([2, 0, 1]))

    x = torch.linspace(-1, 1, 9, dtype=torch.float64).reshape(3, 3)
    found = output_and_gradient(operator_of(loss, "counted"), x)
    torch.testing.assert_close(found, output_and_gradient(loss, x), rtol=1e-14, atol=0)


def test_a_check_that_fails_raises_as_in_eager() -> None:
    operator = operator_of(lambda x: torch.linalg.cholesky(x) * 2, "checked")
    good = torch.eye(3) * 4
    torch.testing.assert_close(operator(good), torch.eye(3) * 4)
    assert operator.last_rung == "cpp"
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        operator(-good)


def test_what_is_written_by_out() -> None:
    def into(x: Tensor) -> Tensor:
        whole, largest, where = torch.zeros(4, 8), torch.empty(4), torch.empty(4, dtype=torch.int64)
        torch.mm(x, x, out=whole[:, :4])
        torch.mul(whole, 2.0, out=whole)
        torch.max(whole, 1, out=(largest, where))
        return whole + largest.unsqueeze(1) * where.unsqueeze(1)

    operator, x = operator_of(into, "written_by_out"), torch.rand(4, 4)
    torch.testing.assert_close(operator(x), into(x))
    assert operator.last_rung == "cpp"
