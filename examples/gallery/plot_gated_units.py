"""
Gated units
===========

A gated unit multiplies one half of its input with an activation of the other half. The three that language
models use differ in the activation alone.
"""

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

import opwright


@opwright.operator
def swiglu(x):
    value, gate = x.chunk(2, dim=-1)
    return value * F.silu(gate)


@opwright.operator
def geglu(x):
    value, gate = x.chunk(2, dim=-1)
    return value * F.gelu(gate, approximate="tanh")


@opwright.operator
def reglu(x):
    value, gate = x.chunk(2, dim=-1)
    return value * F.relu(gate)


# %%
# With a value of one, the result is the activation of the gate. Its slope comes from the derived backward
# kernel.

gates = torch.linspace(-4, 4, 401)
x = torch.stack([torch.ones(401), gates], dim=-1)
figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for unit in (swiglu, geglu, reglu):
    given = x.clone().requires_grad_()
    result = unit(given)
    (slope,) = torch.autograd.grad(result.sum(), given)
    torch.testing.assert_close(result, unit.reference(x))
    axes[0].plot(gates, result[:, 0].detach(), label=unit.reference.__name__)
    axes[1].plot(gates, slope[:, 1], label=unit.reference.__name__)
axes[0].set(title="result", xlabel="gate")
axes[1].set(title="slope", xlabel="gate")
axes[0].legend()
figure.show()
