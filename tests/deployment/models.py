"""Models with operators in them, each with example arguments: what deployments are tested with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import opwright


@opwright.operator(name="deployed::gated")
def gated(x: Tensor, gate: Tensor) -> Tensor:
    return functional.silu(gate) * x


@opwright.operator(name="deployed::lltm_gates")
def lltm_gates(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    input_gate, output_gate, candidate = gates.chunk(3, dim=1)
    cell = old_cell + functional.elu(candidate) * torch.sigmoid(input_gate)
    return torch.tanh(cell) * torch.sigmoid(output_gate), cell


@opwright.operator(name="deployed::scaled_mish")
def scaled_mish(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return functional.mish(x * scale[None, :, None, None] + shift[None, :, None, None])


@opwright.operator(name="deployed::normalised_error")
def normalised_error(x: Tensor, target: Tensor) -> Tensor:
    def whitened(values: Tensor) -> Tensor:
        return (values - values.mean(-1, keepdim=True)) * torch.rsqrt(values.var(-1, keepdim=True) + 1e-5)

    return (whitened(x) - whitened(target)).square().mean(-1)


@opwright.operator(name="deployed::stretched")
def stretched(x: Tensor, power: int, slope: float) -> Tensor:
    return torch.where(x > 0, x**power, slope * x)


class GatedMLP(nn.Module):
    """A product of two linear layers, gated by an operator."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(24, 48), nn.Linear(24, 48), nn.Linear(48, 24)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(gated(self.up(x), self.gate(x)))


class UnrolledLLTM(nn.Module):
    """Four steps of a recurrence; two results."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Linear(8 + 16, 3 * 16)

    def forward(self, steps: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        for step in steps.unbind(0):
            hidden, cell = lltm_gates(self.weights(torch.cat([hidden, step], 1)), cell)
        return hidden, cell


class ConvolutionBlock(nn.Module):
    """A convolution, an operator with a scale for each channel, and pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 6, 3, padding=1)
        self.scale, self.shift = nn.Parameter(torch.linspace(0.5, 2, 6)), nn.Parameter(torch.linspace(-1, 1, 6))

    def forward(self, x: Tensor) -> Tensor:
        return functional.max_pool2d(scaled_mish(self.convolution(x), self.scale, self.shift), 2)


class NormalisingLoss(nn.Module):
    """A loss that normalises what it compares."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return normalised_error(x, target).mean()


class WithNumbers(nn.Module):
    """An operator with an int and a float, called twice with different ones."""

    def forward(self, x: Tensor) -> Tensor:
        return stretched(stretched(x, 2, slope=0.25), power=3, slope=0.5)


class TwoOperators(nn.Module):
    """Two operators, in two dtypes."""

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        wide = normalised_error(x.double(), gate.double())
        return gated(x, gate) * wide.float()[..., None]


class Forces(nn.Module):
    """The gradient of an energy: an operator, and the operator of its gradients."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(gated(x, x.sin()).sum(), x)[0]


class WithGradients(nn.Module):
    """A loss, and its gradients for the parameters: a step of training without its update."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        loss = normalised_error(gated(self.linear(x), x), target).mean()
        return loss, *torch.autograd.grad(loss, list(self.parameters()))


class Mapped(nn.Module):
    """An operator beside one under vmap, which becomes PyTorch's operations."""

    def forward(self, x: Tensor) -> Tensor:
        return gated(x, x).sum(-1) + torch.func.vmap(lambda row: gated(row, row.sin()).sum())(x)


@dataclass(frozen=True)
class Model:
    """A model, its example arguments, and which of their sizes may change."""

    make: Callable[[], Callable[..., Any]]
    args: Callable[[], tuple[Tensor, ...]]
    dynamic_shapes: Any = None


_BATCH = torch.export.Dim("batch")

MODELS = {
    "mlp": Model(GatedMLP, lambda: (torch.randn(5, 24),)),
    "lltm": Model(UnrolledLLTM, lambda: (torch.randn(4, 3, 8), torch.randn(3, 16), torch.randn(3, 16))),
    "convolution": Model(ConvolutionBlock, lambda: (torch.randn(2, 3, 10, 12),)),
    "loss": Model(NormalisingLoss, lambda: (torch.randn(7, 33), torch.randn(7, 33))),
    "numbers": Model(WithNumbers, lambda: (torch.randn(4, 9),)),
    "two": Model(TwoOperators, lambda: (torch.randn(6, 10), torch.randn(6, 10))),
    "forces": Model(Forces, lambda: (torch.randn(5, 4),), ({0: _BATCH},)),
    "gradients": Model(WithGradients, lambda: (torch.randn(5, 6), torch.randn(5, 6))),
    "mapped": Model(Mapped, lambda: (torch.randn(3, 4),)),
    "dynamic": Model(GatedMLP, lambda: (torch.randn(5, 24),), ({0: _BATCH},)),
}


def made(name: str) -> tuple[Callable[..., Any], tuple[Tensor, ...], Any]:
    """A model with weights of its own, its arguments, and its dynamic shapes: the same at every call."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        model = MODELS[name]
        return model.make(), model.args(), model.dynamic_shapes
