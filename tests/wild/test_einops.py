"""Functions and layers that are written with einops, against themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import opwright

pytestmark = pytest.mark.nightly

_IMAGE = (2, 3, 8, 8)


def _patches(x: torch.Tensor) -> torch.Tensor:
    from einops import rearrange

    return rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2).tanh() * 2


def _pooled(x: torch.Tensor) -> torch.Tensor:
    from einops import reduce

    return reduce(x, "b c (h 2) (w 2) -> b c h w", "max") + reduce(x, "b c h w -> b c 1 1", "mean")


def _repeated(x: torch.Tensor) -> torch.Tensor:
    from einops import repeat

    return repeat(x.mean((2, 3)), "b c -> b c h", h=4) * 3


def _similar(x: torch.Tensor) -> torch.Tensor:
    from einops import einsum

    return einsum(x, x.sin(), "b c h w, b c h v -> b w v").sigmoid()


@pytest.mark.parametrize("function", [_patches, _pooled, _repeated, _similar])
def test_functions_have_kernels(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    operator = opwright.operator(function, name=f"tests::einops{function.__name__}")
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
        x = torch.randn(_IMAGE, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
        result = function(x.float())
        found.append((result, *torch.autograd.grad(result.square().sum(), x)))
    torch.testing.assert_close(*found)
