"""
A tensor type whose product is an operator
==========================================

A matrix of 8-bit codes with a scale for each row takes a quarter of the memory. It acts like a tensor, and
its product with a dense matrix is an operator.
"""

import matplotlib.pyplot as plt
import torch

import opwright


@opwright.operator
def coded_product(x, codes, scale):
    return (x @ codes.to(x.dtype).t()) * scale.t()


class Coded(opwright.tensors.Wrapper, data=("codes", "scale"), dtype="scale"):
    """codes · scale."""

    def densify(self):
        return self.codes.to(self.scale.dtype) * self.scale


def coded(matrix):
    scale = matrix.abs().amax(1, keepdim=True) / 127
    return Coded(torch.round(matrix / scale).to(torch.int8), scale)


# %%
# What has no rule of its own works on the dense matrix.

torch.manual_seed(0)
matrix, x = torch.randn(64, 256), torch.randn(32, 256)
small = coded(matrix)
print(type(small).__name__, tuple(small.shape), small.dtype, "sum", round(torch.sum(small).item(), 1))
product = coded_product(x, small.codes, small.scale)
torch.testing.assert_close(product, x @ small.densify().T, rtol=1e-4, atol=1e-4)
print("served by", coded_product.last_rung)

# %%
# What the codes cost in accuracy, and what they save.

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].hist((small.densify() - matrix).flatten(), bins=40)
axes[0].set(title="error of an element")
sizes = {"float32": matrix.nbytes, "codes and scales": small.codes.nbytes + small.scale.nbytes}
axes[1].bar(list(sizes), [size / 1024 for size in sizes.values()])
axes[1].set(ylabel="KiB", title="memory")
figure.show()
