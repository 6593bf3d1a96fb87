"""S13: any arguments and results. By hand, tensors inside of containers are silently not tracked."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import opwright
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.built_together


@opwright.operator
def powered_layer(
    x: Tensor, weights: dict[str, list[Tensor]], bias: Tensor | None = None, *, power: int = 2, scale=0.5
):
    total = sum(x * weight for weight in weights["factors"]) ** power * scale
    return {"total": total if bias is None else total + bias, "halves": (x / 2, torch.sin(x))}


class ByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weights):
        return x * weights[0]

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def double(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def flat(function, **options):
    def call(x, first, second, bias):
        made = function(x, {"factors": [first, second]}, bias, **options)
        return made["total"], *made["halves"]

    return call


@pytest.mark.parametrize("options", mostly_at_night([{"power": 3}, {}, {"scale": 2.0}], by_day=1), ids=str)
def test_gradients_reach_tensors_in_containers(options: dict[str, float]) -> None:
    given = double(2, 3), double(3), double(2, 1), double(1)
    assert torch.autograd.gradcheck(flat(powered_layer, **options), given)
    torch.testing.assert_close(flat(powered_layer, **options)(*given), flat(powered_layer.reference, **options)(*given))
    assert powered_layer.last_rung == "cpp"


def test_defaults_and_keywords() -> None:
    x, weight = double(4), double(4)
    by_name = powered_layer(weights={"factors": [weight]}, x=x)
    torch.testing.assert_close(by_name, powered_layer.reference(x, {"factors": [weight]}))
    with pytest.raises(TypeError, match="unexpected keyword argument 'powre'"):
        powered_layer(x, {"factors": [weight]}, powre=3)


def test_by_hand_they_are_lost_in_silence() -> None:
    x, weight = double(4), double(4)
    ByHand.apply(x, [weight]).sum().backward()
    assert weight.grad is None
