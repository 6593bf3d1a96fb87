"""
A norm with a residual
======================

Language models add a residual, then normalise by the root of the mean square. As PyTorch operations these are
six passes over memory. As an operator they are one, forward and backward, with the sums of the weight's
gradient.
"""

import matplotlib.pyplot as plt
import torch

import opwright


@opwright.operator
def residual_rms_norm(x, residual, weight, eps: float = 1e-6):
    total = x + residual
    return total * torch.rsqrt(total.square().mean(-1, keepdim=True) + eps) * weight, total


# %%
# One call forward and backward, compared with the function itself.

torch.manual_seed(0)
x, residual = torch.randn(64, 256, requires_grad=True), torch.randn(64, 256) * torch.linspace(0.1, 4, 64)[:, None]
weight = torch.ones(256, requires_grad=True)
normed, total = residual_rms_norm(x, residual, weight)
expected, _ = residual_rms_norm.reference(x, residual, weight)
gradients, wanted = (torch.autograd.grad(y.square().sum(), (x, weight)) for y in (normed, expected))
torch.testing.assert_close(normed, expected)
torch.testing.assert_close(gradients, wanted, rtol=1e-4, atol=1e-4)
print("served by", residual_rms_norm.last_rung)

# %%
# Rows of any scale come out with the same one.

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for axis, rows, title in zip(axes, (total, normed), ("x + residual", "normalised"), strict=True):
    axis.scatter(range(64), rows.detach().square().mean(-1).sqrt(), s=12)
    axis.set(title=title, xlabel="row")
axes[0].set_ylabel("root of the mean square")
figure.show()
