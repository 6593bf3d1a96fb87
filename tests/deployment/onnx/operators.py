"""Operators at the edges of what ONNX can say, each with arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import opwright


@dataclass(frozen=True)
class Case:
    """A call in a model: what it computes of tensors, and examples of these, whose first sizes may change."""

    function: Callable[..., Any]
    args: Callable[[], tuple[Tensor, ...]]


@opwright.operator(name="deployed::masked_softmax")
def masked_softmax(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    return torch.softmax(torch.where(mask, x * scale, float("-inf")), -1)


@opwright.operator(name="deployed::beside_one")
def beside_one(x: Tensor, decay: float) -> Tensor:
    return x * (1 - decay) + decay


@opwright.operator(name="deployed::of_integers")
def of_integers(n: Tensor, step: int, factor: float) -> tuple[Tensor, Tensor, Tensor]:
    return n * step + 1, n * factor, n // 3 > step


@opwright.operator(name="deployed::bounded")
def bounded(x: Tensor, low: float, high: float) -> Tensor:
    return torch.nan_to_num(torch.clamp(x, low, high), nan=0.5)


@opwright.operator(name="deployed::gathered")
def gathered(table: Tensor, index: Tensor) -> Tensor:
    return table[index] * 2 + functional.embedding(index, table).tanh()


@opwright.operator(name="deployed::views")
def views(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x.chunk(2, -1)
    return (a.transpose(0, 1) * b.transpose(0, 1)).reshape(-1), torch.cat([b, a], -1).flip(0)


@opwright.operator(name="deployed::reductions")
def reductions(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return x.square().sum(), x.var(-1), x.amax(0), x.logsumexp(-1, keepdim=True)


@opwright.operator(name="deployed::promoted")
def promoted(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    return x + n, (x > n) & (n != 2)


@opwright.operator(name="deployed::branching")
def branching(x: Tensor, leaky: bool, power: int, kind: str) -> Tensor:
    y = functional.leaky_relu(x, 0.1) if leaky else functional.relu(x)
    return y**power + (1 if kind == "one" else 0)


@opwright.operator(name="deployed::residual_norm")
def residual_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    h = x + residual
    return h * torch.rsqrt(h.float().square().mean(-1, keepdim=True) + eps).to(h.dtype) * weight, h


@opwright.operator(name="deployed::convolved")
def convolved(x: Tensor, weight: Tensor) -> Tensor:
    return functional.gelu(functional.conv1d(x, weight, padding=1)) + 1


@opwright.operator(name="deployed::scalars")
def scalars(x: Tensor, s: Tensor) -> Tensor:
    return x * s.exp() - s


def _mask() -> Tensor:
    mask = torch.ones(3, 7, dtype=torch.bool).tril(2)
    mask[:, 0] = True
    return mask


_NAN = float("nan")
CASES = {
    "masks": Case(lambda x, m: masked_softmax(x, m, 0.37), lambda: (torch.randn(3, 7), _mask())),
    "cancels": Case(lambda x: beside_one(x, 0.9999999), lambda: (torch.randn(3, 7).double(),)),
    "cancels32": Case(lambda x: beside_one(x, 0.999), lambda: (torch.randn(3, 7),)),
    "half": Case(lambda x: beside_one(x, 0.37), lambda: (torch.randn(3, 7).half(),)),
    "bfloat16": Case(lambda x: beside_one(x, 0.37), lambda: (torch.randn(3, 7).bfloat16(),)),
    "integers": Case(lambda n: of_integers(n, 5, 0.3), lambda: (torch.arange(-10, 11).reshape(3, 7),)),
    "int32": Case(lambda n: of_integers(n, 2, 1.5), lambda: (torch.arange(-10, 11, dtype=torch.int32).reshape(3, 7),)),
    "bounds": Case(
        lambda x: bounded(x, -0.5, 0.75), lambda: (torch.tensor([[_NAN, 1.0, -3.0], [0.2, float("inf"), -0.1]]),)
    ),
    "gathers": Case(gathered, lambda: (torch.randn(9, 4), torch.tensor([[1, 8], [0, 3], [5, 5]]))),
    "views": Case(views, lambda: (torch.randn(3, 8),)),
    "reductions": Case(reductions, lambda: (torch.randn(3, 8),)),
    "promotes": Case(promoted, lambda: (torch.randn(3, 4), torch.arange(12).reshape(3, 4))),
    "branches": Case(
        lambda x: branching(x, True, 3, "one") + branching(x, False, 2, "none"), lambda: (torch.randn(3, 4),)
    ),
    "norms": Case(
        lambda x, r, w: residual_norm(x, r, w, 1e-5), lambda: (torch.randn(3, 16), torch.randn(3, 16), torch.rand(16))
    ),
    "convolves": Case(convolved, lambda: (torch.randn(3, 2, 9), torch.randn(4, 2, 3))),
    "scalars": Case(scalars, lambda: (torch.randn(3, 4), torch.tensor(0.3))),
    "twice": Case(lambda x: beside_one(beside_one(x, 0.25), -2.0), lambda: (torch.randn(3, 4),)),
}
