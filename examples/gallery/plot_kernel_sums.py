"""
Sums of Gaussian kernels
========================

The density of a cloud of points is a sum of one Gaussian for each of them. Distances, exponentials and the
sum over points are one kernel, and so is the gradient that moves points uphill.
"""

import matplotlib.pyplot as plt
import torch

import opwright


@opwright.operator
def density(where, points, width: float):
    squares = (where[:, None, 0] - points[:, 0]).square() + (where[:, None, 1] - points[:, 1]).square()
    return torch.exp(-squares / (2 * width * width)).mean(-1)


# %%
# Mean shift: every point climbs along the logarithm of the density, by the derived backward kernel.

torch.manual_seed(0)
centres = torch.tensor([[-1.0, 0.0], [1.0, 0.6], [0.6, -1.0]])
points = centres.repeat(60, 1) + 0.35 * torch.randn(180, 2)
climbing = points.clone()
for _ in range(60):
    climbing.requires_grad_()
    (slope,) = torch.autograd.grad(density(climbing, points, 0.35).log().sum(), climbing)
    climbing = climbing.detach() + 0.1 * slope
torch.testing.assert_close(density(climbing, points, 0.35), density.reference(climbing, points, 0.35))
print("served by", density.last_rung)

steps = torch.linspace(-2.2, 2.2, 80)
grid = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), dim=-1).reshape(-1, 2)
figure, axis = plt.subplots(figsize=(4.5, 4), layout="constrained")
axis.contourf(steps, steps, density(grid, points, 0.35).reshape(80, 80), levels=12)
axis.scatter(*points.T, s=4, color="white")
axis.scatter(*climbing.T, s=20, color="red", label="after 60 steps")
axis.legend()
figure.show()
