"""
A physics-informed network
==========================

A network u(x) learns to solve u'' = -sin(x) with u(0) = u(π) = 0. The loss has second derivatives in x, and
training adds a derivative in the weights: three in all. The whole step, with its update, is one operator.
"""

import math

import matplotlib.pyplot as plt
import torch

import opwright
from opwright.func import grad, value_and_grad


def network(weights, x):
    first, bias, second = weights
    return torch.tanh(x[:, None] * first + bias) @ second * x * (math.pi - x)  # zero at both ends


@opwright.operator
def pinn_step_of_gallery(weights, x, rate: float):
    def loss_of(weights):
        slope = grad(lambda x: network(weights, x).sum())
        curvature = grad(lambda x: slope(x).sum())(x)
        return (curvature + torch.sin(x)).square().mean()

    loss, gradients = value_and_grad(loss_of)(weights)
    return loss, [weight - rate * gradient for weight, gradient in zip(weights, gradients, strict=True)]


# %%
# Training calls nothing but the operator.

torch.manual_seed(0)
weights = [torch.randn(24), torch.randn(24), torch.randn(24) / 24]
x = torch.linspace(0, math.pi, 64)
losses = []
for _ in range(3000):
    loss, weights = pinn_step_of_gallery(weights, x, 2e-3)
    losses.append(loss.item())
print(f"residual from {losses[0]:.3f} to {losses[-1]:.5f}, served by {pinn_step_of_gallery.last_rung}")

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].semilogy(losses)
axes[0].set(xlabel="step", ylabel="residual")
axes[1].plot(x, torch.sin(x), label="sin(x)")
axes[1].plot(x, network(weights, x), "--", label="network")
axes[1].legend()
figure.show()
