"""Whole steps as operators: the derivatives are taken inside, so that each step is one derived program.

A step may use `opwright.func`, `torch.func` or `torch.autograd.grad`; the results are differentiable again.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

import opwright
from opwright.func import grad, value_and_grad, vmap

Weights = dict[str, Tensor]


def network(weights: Weights, x: Tensor) -> Tensor:
    """Two layers of tanh, then one number for each row."""
    hidden = torch.tanh(F.linear(x, weights["first"], weights["bias"]))
    return torch.tanh(hidden @ weights["second"]) @ weights["last"]


def weights_of(inputs: int, width: int, dtype: torch.dtype = torch.float32) -> Weights:
    """Weights for the network."""
    shapes = {"first": (width, inputs), "bias": (width,), "second": (width, width), "last": (width,)}
    return {name: torch.randn(shape, dtype=dtype) / width**0.5 for name, shape in shapes.items()}


@opwright.operator
def pinn_step(weights: Weights, points: Tensor, rate: float = 1e-2) -> tuple[Tensor, Weights]:
    """One step of gradient descent on u'' = -sin(x), u by the network: the loss, and the weights after it."""

    def loss_of(weights: Weights) -> Tensor:
        slope = grad(lambda x: network(weights, x).sum())
        curvature = grad(lambda x: slope(x).sum())(points)
        return (curvature + torch.sin(points)).square().mean()

    loss, gradients = value_and_grad(loss_of)(weights)
    return loss, {name: weight - rate * gradients[name] for name, weight in weights.items()}


@opwright.operator
def force_matching(weights: Weights, positions: Tensor, forces: Tensor) -> tuple[Tensor, Weights]:
    """How far the forces of the network's pair energy are from the given ones, and the gradients of that."""

    def energy(positions: Tensor, weights: Weights) -> Tensor:
        distances = (positions[:, None] - positions[None]).square().sum(-1, keepdim=True)
        return network(weights, torch.exp(-distances)).sum()

    def loss_of(weights: Weights) -> Tensor:
        return (grad(energy)(positions, weights) + forces).square().mean()

    return value_and_grad(loss_of)(weights)


@opwright.operator
def gradient_penalty(weights: Weights, real: Tensor, made: Tensor, mix: Tensor) -> Tensor:
    """How far the network's slopes between two batches are from one (WGAN-GP), by autograd's own function."""
    between = torch.lerp(made, real, mix).requires_grad_()
    (slopes,) = torch.autograd.grad(network(weights, between).sum(), between, create_graph=True)
    return (slopes.norm(dim=1) - 1).square().mean()


@opwright.operator
def clipped_gradients(weights: Weights, x: Tensor, target: Tensor, most: float = 1.0) -> Weights:
    """The mean of the gradients of every sample, each no longer than `most` (DP-SGD without its noise)."""

    def loss_of(weights: Weights, x: Tensor, target: Tensor) -> Tensor:
        return (network(weights, x) - target).square()

    gradients = vmap(grad(loss_of), in_dims=(None, 0, 0))(weights, x, target)
    lengths = sum(g.square().flatten(1).sum(1) for g in gradients.values()).sqrt()
    factors = torch.clamp(most / lengths, max=1.0) / x.shape[0]
    return {name: torch.tensordot(factors, g, 1) for name, g in gradients.items()}
