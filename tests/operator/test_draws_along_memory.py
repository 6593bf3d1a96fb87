"""Random numbers are drawn in the order in which eager's tensors lie in memory, whatever made them lie so."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import opwright
from opwright.api.operator import Operator
from opwright.tracing.interface.orders import order_of
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.suite.nights import mostly_at_night

pytestmark = [pytest.mark.built_together, pytest.mark.falls_back]

SIGNATURE = Signature((Parameter("x", Kind.TENSOR, False),), 1)
Step = Callable[[Tensor], Tensor]
VIEWS: dict[str, Step] = {
    "as it is": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1),
    "transposed within": lambda x: x.transpose(1, 2),
    "turned": lambda x: x.permute(1, 2, 0),
    "turned back": lambda x: x.permute(2, 0, 1),
    "a slice": lambda x: x[:, 1:].transpose(0, 2),
    "a column": lambda x: x[:, :1].transpose(0, 1),
    "expanded": lambda x: x[:, :1].expand(-1, 4, -1).transpose(0, 2),
}
BETWEEN: dict[str, Step] = {
    "nothing": lambda x: x,
    "exp": torch.exp,
    "softmax": lambda x: x.softmax(1),
    "layer norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "mean": lambda x: x - x.mean(1, keepdim=True),
    "product": lambda x: x @ x.transpose(-1, -2),
    "linear": lambda x: functional.linear(x, x.new_ones(3, x.shape[-1])),
    "cat": lambda x: torch.cat([x, x.sin()], 1),
    "where": lambda x: torch.where(x > 0, x, 0.5),
    "flip": lambda x: x.flip(1),
    "copied": lambda x: x.contiguous(),
    "cloned": lambda x: x.clone(),
    "reshaped": lambda x: x.reshape(x.shape[0], -1, 1),
    "summed": lambda x: x.sum(1, keepdim=True),
    "broadcast": lambda x: x.sum(1, keepdim=True) + torch.ones(x.shape[-1]),
    "cumulated": lambda x: x.cumsum(1),
    "zeros": torch.zeros_like,
    "moved": lambda x: x.movedim(0, 2).sinh(),
}
DRAWS: dict[str, Step] = {
    "dropout": lambda y: functional.dropout(y, 0.4),
    "dropout of features": lambda y: functional.dropout1d(y, 0.5),
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "normal_": lambda y: torch.empty_like(y).normal_(),
    "uniform_": lambda y: torch.empty_like(y).uniform_(1, 2),
    "exponential_": lambda y: torch.empty_like(y).exponential_(),
    "bernoulli": lambda y: torch.bernoulli(torch.full_like(y, 0.5)),
    "into a slice": lambda y: y.clone().index_fill(0, torch.tensor([0]), 1.0)[1:].normal_(),
}


def program(seed: int) -> tuple[str, Step]:
    """A function of views, operations and draws, and what it does in words."""
    chosen = random.Random(seed)
    steps = [(name, table[name]) for table in (VIEWS, BETWEEN, DRAWS) for name in [chosen.choice(list(table))]]
    if chosen.random() < 0.3:  # what was drawn lies so, too
        steps += [(name, table[name]) for table in (VIEWS, DRAWS) for name in [chosen.choice(list(table))]]

    def drawn(x: Tensor) -> Tensor:
        for _, step in steps:
            x = step(x)
        return x * 2.0

    return " → ".join(name for name, _ in steps), drawn


@pytest.mark.parametrize("seed", mostly_at_night(range(400), 6))
def test_random_programs_draw_what_eager_draws(seed: int) -> None:
    words, function = program(seed)
    operator = Operator(function, signature=SIGNATURE)
    x = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(seed))
    found = []
    for each in (operator, function):
        torch.manual_seed(seed)
        found.append((each(x), torch.rand(2)))
    torch.testing.assert_close(*found, msg=lambda told: f"{words}: {told}")
    assert order_of(found[0][0]) == order_of(found[1][0]), words


def test_dropout_after_attention_in_an_encoder_layer_has_kernels() -> None:
    """Its attention puts the batch first with a transposition, and drops elements of what it gets."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).double()
    served, x = opwright.module(layer), torch.randn(3, 5, 8, dtype=torch.double, requires_grad=True)
    found = []
    for each in (served, layer):
        torch.manual_seed(1)
        y = each(x)
        found.append((y.detach(), *torch.autograd.grad(y.square().sum(), (x, *layer.parameters()))))
    torch.testing.assert_close(*found)
    assert str(served.explain()).split()[1] == "kernels:"
