"""Second derivatives through `create_graph=True`: a PINN's residual, forces of a pair energy, a gradient penalty.

python benchmarks/second_order.py [--without-compile] [--processor-time] [--json FILE]

Times a whole training step. `torch.compile` refuses these, so the peer is eager. "rewritten" is `torch.compile` around
the same work where the derivatives are taken by `torch.func` inside: what somebody gets who writes his step anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script
from torch import Tensor

import opwright
from opwright.benchmark.stopwatch import Thunk

LEAST = 3.0


@opwright.operator
def network(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor) -> Tensor:
    """Two layers of tanh and a sum."""
    return torch.tanh(torch.tanh(x * w1 + b1) @ w2 + b2) @ w3


@opwright.operator
def pair_energy(positions: Tensor) -> Tensor:
    """A Gaussian of all distances."""
    difference = positions.unsqueeze(-2) - positions.unsqueeze(-3)
    return torch.exp(-0.5 * (difference * difference).sum(-1)).sum()


@opwright.operator
def critic(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor) -> Tensor:
    """One hidden layer."""
    return torch.nn.functional.silu(x @ w1 + b1) @ w2


def residual(function: Callable[..., Tensor], points: int, width: int) -> Thunk:
    """The loss of u_xx + sin(x), and its gradients for the weights."""
    x = torch.linspace(-1, 1, points).reshape(-1, 1).requires_grad_()
    weights = _weights((1, width), (width,), (width, width), (width,), (width, 1))

    def step() -> tuple[Tensor, ...]:
        u = function(x, *weights)
        (u_x,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        return torch.autograd.grad((u_xx + torch.sin(x)).square().mean(), weights)

    return step


def residual_rewritten(function: Callable[..., Tensor], points: int, width: int) -> Thunk:
    """The same by `torch.func`."""
    x = torch.linspace(-1, 1, points).reshape(-1, 1)
    weights = tuple(_weights((1, width), (width,), (width, width), (width,), (width, 1)))

    def loss(weights: tuple[Tensor, ...]) -> Tensor:
        u_x = torch.func.grad(lambda x: function(x, *weights).sum())
        u_xx = torch.func.grad(lambda x: u_x(x).sum())(x)
        return (u_xx + torch.sin(x)).square().mean()

    return _compiled(loss, weights)


def forces(function: Callable[..., Tensor], points: int, dimensions: int) -> Thunk:
    """The loss of forces against wanted ones, and its gradient for the positions."""
    positions = torch.randn(points, dimensions).requires_grad_()
    wanted = torch.randn(points, dimensions)

    def step() -> tuple[Tensor, ...]:
        (force,) = torch.autograd.grad(function(positions), positions, create_graph=True)
        return torch.autograd.grad((force + wanted).square().mean(), positions)

    return step


def forces_rewritten(function: Callable[..., Tensor], points: int, dimensions: int) -> Thunk:
    """The same by `torch.func`."""
    positions, wanted = torch.randn(points, dimensions), torch.randn(points, dimensions)

    def loss(positions: Tensor) -> Tensor:
        return (torch.func.grad(function)(positions) + wanted).square().mean()

    return _compiled(loss, positions)


def penalty(function: Callable[..., Tensor], batch: int, width: int) -> Thunk:
    """How far gradients are from length one, and the gradients of that for the weights."""
    x = torch.randn(batch, width).requires_grad_()
    weights = _weights((width, width), (width,), (width, 1))

    def step() -> tuple[Tensor, ...]:
        (gradient,) = torch.autograd.grad(function(x, *weights).sum(), x, create_graph=True)
        return torch.autograd.grad((gradient.norm(dim=1) - 1).square().mean(), weights, allow_unused=True)

    return step


def penalty_rewritten(function: Callable[..., Tensor], batch: int, width: int) -> Thunk:
    """The same by `torch.func`."""
    x = torch.randn(batch, width)
    weights = tuple(_weights((width, width), (width,), (width, 1)))

    def loss(weights: tuple[Tensor, ...]) -> Tensor:
        gradient = torch.func.grad(lambda x: function(x, *weights).sum())(x)
        return (gradient.norm(dim=1) - 1).square().mean()

    return _compiled(loss, weights)


def _compiled(loss: Callable[..., Tensor], parameters: Any) -> Thunk:
    step = torch.compile(torch.func.grad(loss))
    return lambda: step(parameters)


WORK = {
    "PINN residual": (residual, residual_rewritten, network, ((64, 32), (512, 128))),
    "force matching": (forces, forces_rewritten, pair_energy, ((64, 3), (256, 3))),
    "gradient penalty": (penalty, penalty_rewritten, critic, ((32, 64), (256, 512))),
}


def measure(options: Options) -> Scorecard:
    """Time each at a small and a medium size."""
    rows = []
    for name, (prepare, rewritten, operator, sizes) in WORK.items():
        for size in sizes:
            ways = {"opwright": prepare(operator, *size), "eager": prepare(operator.reference, *size)}
            if not (options.quick or options.without_compile):
                torch.compiler.reset()  # one compilation for exactly these sizes
                ways["rewritten"] = rewritten(operator.reference, *size)
            rows.append(Row(f"{name} {size[0]}x{size[1]}", medians_us(ways, options)))
    ratios = [(row.figures["eager"] or 0.0) / (row.figures["opwright"] or 1.0) for row in rows]
    target = Target("eager / opwright", geometric_mean(ratios), ">=", LEAST)
    return Scorecard("a step with second derivatives; µs", rows, [target])


def _weights(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [(torch.randn(shape) / shape[0] ** 0.5).requires_grad_() for shape in shapes]


if __name__ == "__main__":
    run_script(measure, __doc__)
