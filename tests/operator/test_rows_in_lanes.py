"""Short rows, sixteen at a time: what a trace with rows of 16 built serves rows of every other length too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright import Operator, Sample
from opwright.checking.accuracy import Comparison
from tests.quiet_settings import quiet_settings
from tests.suite.built_together import build_together


def masked(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return torch.softmax(x, -1), torch.log_softmax(x.masked_fill(mask, -9.0), -1)


def normalized(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return functional.layer_norm(x, x.shape[-1:], weight, bias), x.var(-1) + x.amax(-1) * x.amin(-1)


def both_axes(x: Tensor) -> Tensor:
    return (x - x.mean((-2, -1), keepdim=True)) * torch.logsumexp(x, (-2, -1), keepdim=True)


def loss(x: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(x.flatten(0, -2), target, label_smoothing=0.1)


def more_than_one(x: Tensor) -> tuple[Tensor, Tensor]:
    return (x > 1).any(-1), (x * 8).to(torch.int64).sum(-1)


Given = tuple[Tensor, ...]
EXTRA: dict[Callable[..., Any], Callable[[Tensor], Given]] = {
    masked: lambda x: (x.detach() * 7 % 2 > 1.4,),
    normalized: lambda x: (torch.linspace(1, 2, x.shape[-1], dtype=x.dtype), torch.ones(x.shape[-1], dtype=x.dtype)),
    both_axes: lambda _: (),
    loss: lambda x: (torch.arange(x.shape[:-1].numel()) * 5 % x.shape[-1],),
    more_than_one: lambda _: (),
}
DTYPES = (torch.float32, torch.float64, torch.bfloat16)
# Full panels and parts of one, rows too few and too long to be taken so; the axis before is short, or the only one.
SHAPES = ((2, 20, 16), (3, 17, 9), (40, 1, 33), (1, 16, 12), (15, 3, 100), (1, 1, 20), (9, 4, 130), (5, 8, 3))
LAYOUTS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: x,
    lambda x: x.permute(2, 1, 0).contiguous().permute(2, 1, 0),
    lambda x: torch.cat((x, x), -1)[..., ::2],
    lambda x: x[:, :1].expand(x.shape),
)


def _given(function: Callable[..., Any], shape: tuple[int, ...], dtype: torch.dtype) -> Given:
    x = (2 * torch.randn(shape, generator=torch.Generator().manual_seed(5))).to(dtype)
    return (x, *EXTRA[function](x))


def _operator(function: Callable[..., Any]) -> Operator:
    return Operator(
        function,
        name=f"lanes_{function.__name__}",
        samples=lambda _, dtype: [Sample(_given(function, SHAPES[0], dtype))],
        settings=quiet_settings(optimized=False),
    )


OPERATORS = {function: _operator(function) for function in EXTRA}


def _run(call: Callable[..., Any], given: Given, dtype: torch.dtype | None = None) -> list[Tensor]:
    """Results and gradients of all floating-point arguments."""
    own = [each.to(dtype) if dtype and each.is_floating_point() else each for each in given]
    own = [each.detach().requires_grad_(each.is_floating_point()) for each in own]
    returned = call(*own)
    results = list(returned) if isinstance(returned, tuple) else [returned]
    if not results[0].requires_grad:
        return results
    ones = [torch.linspace(-1, 1, each.numel(), dtype=each.dtype).reshape(each.shape) + 2 for each in results]
    leaves = [each for each in own if each.requires_grad]
    return [*(each.detach() for each in results), *torch.autograd.grad(results, leaves, ones)]


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_together(
        *(lambda f=f, d=d: _run(OPERATORS[f], _given(f, SHAPES[0], d)) for f in OPERATORS for d in DTYPES)  # type: ignore[misc]
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", EXTRA, ids=lambda function: function.__name__)
def test_results_and_gradients_are_those_of_float64(function: Callable[..., Any], dtype: torch.dtype) -> None:
    operator = OPERATORS[function]
    _run(operator, _given(function, SHAPES[0], dtype))
    assert "in_lanes<" in operator.source("cpp")
    for shape in SHAPES:
        for layout in LAYOUTS:
            x, *extra = _given(function, shape, dtype)
            given = (layout(x), *extra)
            mine, eager = _run(operator, given), _run(function, given)
            assert operator.last_rung == "cpp"
            Comparison(function.__name__, mine, eager, _run(function, given, torch.float64), inputs=[x]).judge()
