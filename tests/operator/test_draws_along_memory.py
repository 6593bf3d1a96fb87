"""Random numbers are drawn in the order in which eager's tensors lie in memory, whatever made them lie so."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

import opwright
from opwright.api.operator import Operator
from opwright.tracing.interface.orders import order_of
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.falls_back

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


@pytest.mark.parametrize("seed", mostly_at_night(range(400), 3))
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


def dropped(x: Tensor, w: Tensor) -> Tensor:
    return (functional.dropout(x.transpose(0, 1).exp(), 0.4) * w).sum(1)


def added(x: Tensor, w: Tensor) -> Tensor:
    return (torch.rand_like(x.transpose(0, 1)) * x.t().sin() * w).sum(1)


def dropped_by_rows(x: Tensor, w: Tensor) -> Tensor:
    return (functional.dropout(x.exp(), 0.4).t() * w).sum(1)


def by_vjp(torch_func: Any, function: Any, x: Tensor, w: Tensor) -> Any:
    value, pull = torch_func.vjp(function, x, w)
    return value, pull(torch.ones_like(value))


def over_given_gradients(_: Any, function: Any, x: Tensor, w: Tensor) -> Any:
    """A plain call, and its gradients under `vmap`, which drop what the call has dropped."""
    x = x.clone().requires_grad_()
    y = function(x, w)

    def gradient(cotangent: Tensor) -> Tensor:
        return torch.autograd.grad(y, x, cotangent, retain_graph=True)[0]

    return y.detach(), torch.func.vmap(gradient, randomness="same")(torch.eye(len(y), dtype=y.dtype))


def over_given_gradients_recorded(_: Any, function: Any, x: Tensor, w: Tensor) -> Any:
    x = x.clone().requires_grad_()
    y = function(x, w)

    def gradient(cotangent: Tensor) -> Tensor:
        return torch.autograd.grad(y, x, cotangent, create_graph=True)[0]

    found = torch.func.vmap(gradient, randomness="same")(torch.eye(len(y), dtype=y.dtype))
    return y.detach(), found.detach(), torch.autograd.grad(found.square().sum(), x)


def with_tangents(_: Any, function: Any, x: Tensor, w: Tensor) -> Any:
    with forward_ad.dual_level():
        return tuple(forward_ad.unpack_dual(function(forward_ad.make_dual(x, x.cos()), w)))


UNDER = {
    "grad": lambda of, f, x, w: of.grad(lambda *given: f(*given).square().sum(), argnums=(0, 1))(x, w),
    "vjp": by_vjp,
    "jacrev": lambda of, f, x, w: of.jacrev(f, chunk_size=3)(x, w),
    "jacfwd": lambda of, f, x, w: of.jacfwd(f, randomness="same")(x, w),
    "hessian": lambda of, f, x, w: torch.func.jacfwd(
        of.grad(lambda *given: f(*given).square().sum()), randomness="same"
    )(x, w),
    "vmap": lambda of, f, x, w: of.vmap(f, (0, None), randomness="different")(torch.stack([x, x * 2]), w),
    "dual tensors": with_tangents,
    "vmap of gradients": over_given_gradients,
    "vmap of recorded gradients": over_given_gradients_recorded,
}


TRANSFORMED = [(how, function) for function in (dropped, added, dropped_by_rows) for how in UNDER]
TRANSFORMED_BY_DAY = [
    *((how, dropped) for how in ("grad", "jacrev", "jacfwd", "hessian", "dual tensors", "vmap of recorded gradients")),
    *((how, added) for how in ("vjp", "vmap of gradients")),
    *((how, dropped_by_rows) for how in ("grad", "vmap")),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("how", "function"), mostly_at_night(TRANSFORMED, TRANSFORMED_BY_DAY))
def test_transforms_draw_what_they_draw_of_the_function(how: str, function: Callable[..., Tensor]) -> None:
    """PyTorch's dropout draws row by row under `torch.func`, and along memory elsewhere."""
    operator = opwright.operator(function, name=f"tests::{function.__name__}")
    x = torch.linspace(0.1, 1, 12, dtype=torch.double).reshape(3, 4)
    for given in (x, x.t().contiguous().t()):
        w = torch.linspace(1, 2, 3, dtype=torch.double)
        found = []
        for torch_func, each in ((torch.func, function), (torch.func, operator), (opwright.func, function)):
            torch.manual_seed(0)
            found.append((UNDER[how](torch_func, each, given, w), torch.rand(2)))
        torch.testing.assert_close(found[1], found[0])
        torch.testing.assert_close(found[2], found[0])


def of_numbers(x: Tensor) -> Tensor:
    return torch.normal(0.0, 1.0, x.t().shape).t() * x + torch.rand_like(x.t()).t()


def on_the_processor(x: Tensor) -> Tensor:
    return torch.empty(4, device="cpu").normal_() * x + x.t().sin().t()


def of_an_old_constructor(x: Tensor) -> Tensor:
    return torch.FloatTensor(4).uniform_() * x + torch.empty_like(x.t()).normal_().t()


@pytest.mark.parametrize("function", [of_numbers, on_the_processor, of_an_old_constructor])
def test_learning_the_orders_moves_no_generator(function: Step) -> None:
    """A run on meta tensors tells them, in which not every way to make a tensor is on the meta device."""
    operator, x = Operator(function, signature=SIGNATURE), torch.ones(3, 4)
    for seed in range(2):
        found = []
        for each in (operator, function):
            torch.manual_seed(seed)
            found.append((each(x), torch.rand(2)))
        torch.testing.assert_close(*found)
        assert order_of(found[0][0]) == order_of(found[1][0])
