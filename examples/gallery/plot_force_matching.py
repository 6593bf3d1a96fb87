"""
Force matching
==============

Two parameters of a pair energy are fitted to given forces. A force is a derivative of the energy, so the fit
needs second derivatives: ``create_graph=True``, as for any function of PyTorch.
"""

import matplotlib.pyplot as plt
import torch

import opwright


@opwright.operator
def morse_energy(positions, depth, width):
    offsets = positions[:, None] - positions[None]
    distances = (offsets.square().sum(-1) + 1e-6).sqrt()
    each = depth * ((1 - torch.exp(-width * (distances - 1))).square() - 1)
    return 0.5 * (each * (1 - torch.eye(positions.shape[0]))).sum()


def forces(positions, depth, width):
    x = positions.detach().requires_grad_()
    (slope,) = torch.autograd.grad(morse_energy(x, depth, width), x, create_graph=True)
    return -slope


# %%
# Forces of the true parameters, and a fit that begins elsewhere.

torch.manual_seed(0)
grid = torch.stack(torch.meshgrid(*[torch.arange(3.0)] * 3, indexing="ij"), dim=-1).reshape(-1, 3)
positions = 1.1 * grid + 0.08 * torch.randn(27, 3)
wanted = forces(positions, torch.tensor(1.5), torch.tensor(2.0)).detach()
parameters = [torch.tensor(0.8, requires_grad=True), torch.tensor(1.2, requires_grad=True)]
optimizer = torch.optim.Adam(parameters, lr=0.02)
path = []
for _ in range(300):
    optimizer.zero_grad()
    (forces(positions, *parameters) - wanted).square().mean().backward()
    optimizer.step()
    path.append([parameter.item() for parameter in parameters])
print(f"depth {path[-1][0]:.2f}, width {path[-1][1]:.2f}, served by {morse_energy.last_rung}")

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.plot([depth for depth, _ in path], label="depth")
axis.plot([width for _, width in path], label="width")
axis.axhline(1.5, color="C0", linestyle=":")
axis.axhline(2.0, color="C1", linestyle=":")
axis.set(xlabel="step")
axis.legend()
figure.show()
