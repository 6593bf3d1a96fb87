"""The functions and models of derivation.py: blocks, models that repeat them, and recurrences that are written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Case = tuple[Callable[..., Any], list[torch.Tensor]]


class ResidualBlock(nn.Module):
    """The residual block of a diffusion model's UNet."""

    def __init__(self, channels: int = 32, embedded: int = 64) -> None:
        super().__init__()
        self.first_norm, self.first = nn.GroupNorm(8, channels), nn.Conv2d(channels, channels, 3, padding=1)
        self.embedding = nn.Linear(embedded, channels)
        self.second_norm, self.second = nn.GroupNorm(8, channels), nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Add two convolutions with the embedded time between."""
        inner = self.first(functional.silu(self.first_norm(x)))
        inner = inner + self.embedding(functional.silu(time))[:, :, None, None]
        return x + self.second(functional.silu(self.second_norm(inner)))


class ResidualBlocks(nn.Module):
    """Some of them, one after the other."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([ResidualBlock() for _ in range(count)])

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Run them all."""
        for block in self.blocks:
            x = block(x, time)
        return x


class ConvNextBlock(nn.Module):
    """A block of ConvNeXt."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.across = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.wide, self.narrow = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.full((channels,), 1e-6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add a perceptron at every point."""
        inner = self.norm(self.across(x).permute(0, 2, 3, 1))
        inner = self.narrow(functional.gelu(self.wide(inner))) * self.scale
        return x + inner.permute(0, 3, 1, 2)


def _linear_layers() -> Case:
    return nn.Sequential(*[nn.Linear(32, 32) for _ in range(16)]), [torch.randn(8, 32, requires_grad=True)]


def _encoder(layers: int) -> Case:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = layer if layers == 1 else nn.TransformerEncoder(layer, layers)
    return model, [torch.randn(4, 16, 32, requires_grad=True)]


def _residual(count: int) -> Case:
    model = ResidualBlock() if count == 1 else ResidualBlocks(count)
    return model, [torch.randn(2, 32, 8, 8, requires_grad=True), torch.randn(2, 64)]


def _convnext(count: int) -> Case:
    model = ConvNextBlock() if count == 1 else nn.Sequential(*[ConvNextBlock() for _ in range(count)])
    return model, [torch.randn(2, 32, 8, 8, requires_grad=True)]


def _runge_kutta(steps: int) -> Case:
    def slope(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * w) - 0.1 * x

    def solve(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        h = 1 / steps
        for _ in range(steps):
            first = slope(x, w)
            second = slope(x + 0.5 * h * first, w)
            third = slope(x + 0.5 * h * second, w)
            x = x + h / 6 * (first + 2 * second + 2 * third + slope(x + h * third, w))
        return x

    return solve, [torch.randn(64, 32), torch.randn(32)]


def _scan(steps: int) -> Case:
    def scan(x: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
        state, states = torch.zeros_like(x[0]), []
        for t in range(steps):
            state = decay * state + x[t]
            states.append(state)
        return torch.stack(states)

    return scan, [torch.randn(steps, 16, 32), torch.rand(16, 32)]


def _crf(steps: int) -> Case:
    def partition(emissions: torch.Tensor, transitions: torch.Tensor) -> torch.Tensor:
        alpha = emissions[0]
        for t in range(1, steps):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + transitions, dim=1) + emissions[t]
        return torch.logsumexp(alpha, dim=1)

    return partition, [torch.randn(steps, 8, 12), torch.randn(12, 12)]


def _lltm(steps: int) -> Case:
    def run(
        x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        for t in range(steps):
            i, o, g = functional.linear(torch.cat([h, x[t]], 1), w, b).chunk(3, dim=1)
            c = c + functional.elu(g) * torch.sigmoid(i)
            h = torch.tanh(c) * torch.sigmoid(o)
        return h, c

    shapes = ((steps, 8, 16), (96, 48), (96,), (8, 32), (8, 32))
    return run, [0.3 * torch.randn(shape) for shape in shapes]


CASES: dict[str, Callable[[], Case]] = {
    "transformer encoder layer": lambda: _encoder(1),
    "UNet residual block": lambda: _residual(1),
    "ConvNeXt block": lambda: _convnext(1),
    "16 linear layers": _linear_layers,
    "12 encoder layers": lambda: _encoder(12),
    "12 residual blocks": lambda: _residual(12),
    "12 ConvNeXt blocks": lambda: _convnext(12),
    "RK4, 20 steps": lambda: _runge_kutta(20),
    "scan of 64": lambda: _scan(64),
    "CRF, 16 steps": lambda: _crf(16),
    "LLTM, 32 steps": lambda: _lltm(32),
}
