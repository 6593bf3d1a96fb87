"""Attention without dropout is torch's own kernel inside of programs, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import opwright
from opwright.errors import FallbackRefused
from tests.nn.against_plain import compare
from tests.suite.nights import mostly_at_night

Tensor = torch.Tensor


def gated_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q * 2, k, v) * torch.sigmoid(q)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.tanh(scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3))


def masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = (q.detach() @ k.detach().mT) > 0
    return scaled_dot_product_attention(q, k, v, attn_mask=mask | torch.eye(6, dtype=torch.bool)) + 1


def of_two(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(scaled_dot_product_attention(q, k, v), k, v)


def _heads(layout: str) -> list[Tensor]:
    torch.manual_seed(0)
    made = [torch.randn(2, 4, 6, 8) for _ in range(3)]
    if layout == "heads inside":
        made = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in made]
    if layout == "features strided":
        made = [x.mT.contiguous().mT for x in made]
    return [x.requires_grad_() for x in made]


LAYOUTS = ("row-major", "heads inside", "features strided")
CASES = [(function, layout) for layout in LAYOUTS for function in (gated_heads, causal, masked, of_two)]


@pytest.mark.parametrize(
    ("function", "layout"), mostly_at_night(CASES, by_day=[*CASES[:3], (gated_heads, LAYOUTS[1]), (masked, LAYOUTS[2])])
)
def test_values_and_gradients(function: Callable[..., Tensor], layout: str) -> None:
    operator, arguments = opwright.operator(function), _heads(layout)
    for _ in range(2):
        found, expected = operator(*arguments), function(*arguments)
        assert operator.last_rung == "cpp"
        torch.testing.assert_close(found, expected)
        gradients = [torch.autograd.grad(y.square().sum(), arguments) for y in (found, expected)]
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.falls_back
def test_the_second_derivative_is_refused_as_in_eager() -> None:
    arguments = _heads("row-major")
    for function in (gated_heads, opwright.operator(gated_heads)):
        with pytest.raises((RuntimeError, FallbackRefused), match="is not implemented"):
            torch.autograd.grad(function(*arguments).sum(), arguments[:1], create_graph=True)[0].sum().backward()


@pytest.mark.falls_back
def test_attention_with_dropout_draws_what_eager_draws() -> None:
    def dropped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.tanh(scaled_dot_product_attention(q, k, v, dropout_p=0.5))

    operator, arguments = opwright.operator(dropped), _heads("row-major")
    results = []
    for function in (operator, dropped):
        torch.manual_seed(7)
        results.append([function(*arguments), function(*arguments)])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("training", mostly_at_night([True, False], by_day=1))
def test_a_transformer_layer_is_served(training: bool) -> None:
    torch.manual_seed(0)
    plain = nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True).train(training)
    assert compare(plain, [torch.randn(3, 5, 16)]).last_rung == "cpp"
