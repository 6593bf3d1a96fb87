"""Functions whose rules are known."""

from __future__ import annotations

import torch
from torch.nn import functional


def spread_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 - y


def spread_gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.silu(x) * y


def spread_softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def spread_mean(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x * y).mean(0)


def spread_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w


def spread_linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return functional.linear(x, w) * 2


def spread_flat(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).reshape(-1)


def spread_largest(x: torch.Tensor) -> torch.Tensor:
    return x.amax(0)


def spread_smallest(x: torch.Tensor) -> torch.Tensor:
    return x.amin(0)


def spread_over_size(x: torch.Tensor) -> torch.Tensor:
    return x.square().sum(0) / x.shape[0]


def spread_sliced(x: torch.Tensor) -> torch.Tensor:
    return x[1:] * x[:-1]


def spread_chunks(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a, b, c = x.chunk(3, -1)
    return a * b + c * y


def spread_rolled(x: torch.Tensor) -> torch.Tensor:
    return x.roll(1, 0) + x.flip(0) * 2


def spread_positions(x: torch.Tensor) -> torch.Tensor:
    return x * torch.arange(x.shape[0])[:, None]


def spread_embedding(indices: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return functional.embedding(indices, w) * 2


def spread_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bhqd,bhkd->bhqk", q, k)


def spread_pairs(x: torch.Tensor) -> torch.Tensor:
    return x[:, None] * x[None, :]


def spread_random(x: torch.Tensor) -> torch.Tensor:
    return functional.dropout(x, 0.5)


def spread_layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, (x.shape[-1],), w, b)


def spread_lltm(gates: torch.Tensor, cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    i, o, g = gates.chunk(3, -1)
    new = cell + functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(new) * torch.sigmoid(o), new


def spread_cross_entropy(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(x, target)


def spread_squared_error(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.mse_loss(x, y)


def spread_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def spread_argmax(x: torch.Tensor) -> torch.Tensor:
    return x.argmax(-1)


def spread_cumulated(x: torch.Tensor) -> torch.Tensor:
    return x.exp().cumsum(-1)


def spread_columns(x: torch.Tensor) -> torch.Tensor:
    return (x.square().sum(0) + 1).log()


def spread_scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


def spread_padded(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x * 2, torch.zeros_like(x)], -1)


def spread_padded_steps(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.floor(), torch.zeros_like(x)], -1)


OUTSIDE = 1.0


def spread_by_outside(x: torch.Tensor) -> torch.Tensor:
    return x * OUTSIDE


def spread_noise(x: torch.Tensor) -> torch.Tensor:
    return x * torch.randn_like(x)
