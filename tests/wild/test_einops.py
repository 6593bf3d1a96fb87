"""Functions and layers that are written with einops, against themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import opwright

pytestmark = pytest.mark.nightly

_IMAGE = (2, 3, 8, 8)


def _functions() -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    from einops import einsum, rearrange, reduce, repeat

    def patches(x: torch.Tensor) -> torch.Tensor:
        return rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2).tanh() * 2

    def pooled(x: torch.Tensor) -> torch.Tensor:
        return reduce(x, "b c (h 2) (w 2) -> b c h w", "max") + reduce(x, "b c h w -> b c 1 1", "mean")

    def repeated(x: torch.Tensor) -> torch.Tensor:
        return repeat(x.mean((2, 3)), "b c -> b c h", h=4) * 3

    def similar(x: torch.Tensor) -> torch.Tensor:
        return einsum(x, x.sin(), "b c h w, b c h v -> b w v").sigmoid()

    return {function.__name__: function for function in (patches, pooled, repeated, similar)}


@pytest.mark.parametrize("name", ["patches", "pooled", "repeated", "similar"])
def test_functions_have_kernels(name: str) -> None:
    function = _functions()[name]
    operator = opwright.operator(function, name=f"tests::einops_{name}")
    _assert_alike(operator, function)
    assert operator.last_rung == "cpp"


def test_layers_are_served() -> None:
    from einops.layers.torch import EinMix, Rearrange, Reduce

    torch.manual_seed(0)
    mix = EinMix("b c h w -> b h w d", weight_shape="c d", bias_shape="d", c=3, d=4)
    model = nn.Sequential(mix, Rearrange("b h w d -> b (h w) d"), nn.GELU(), Reduce("b t d -> b d", "mean"))
    _assert_alike(opwright.module(model), model)


def _assert_alike(ours: Callable[..., torch.Tensor], eager: Callable[..., torch.Tensor]) -> None:
    found = []
    for function in (ours, eager):
        x = torch.randn(_IMAGE, generator=torch.Generator().manual_seed(1)).requires_grad_()
        result = function(x)
        found.append((result, *torch.autograd.grad(result.square().sum(), x)))
    torch.testing.assert_close(*found)
