"""
Convolution and batch norm, with less memory
============================================

A convolution followed by a batch norm keeps two large tensors for its backward pass. With ``save="inputs"``
it keeps its arguments alone, and computes the convolution again.
"""

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

import opwright


def block(x, weight):
    return F.relu(F.batch_norm(F.conv2d(x, weight, padding=1), None, None, training=True))


frugal = opwright.operator(block, name="gallery::frugal", save="inputs")


def four(function, x, weights):
    for weight in weights:
        x = function(x, weight)
    return x


# %%
# Bytes kept between forward and backward, for four blocks in a row.


def kept_bytes(function, x, weights):
    storages = {}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        four(function, x, weights)
    return sum(tensor.untyped_storage().nbytes() for tensor in storages.values())


torch.manual_seed(0)
x = torch.randn(4, 16, 32, 32, requires_grad=True)
weights = [torch.randn(16, 16, 3, 3, requires_grad=True) for _ in range(4)]
kept = {"as written": kept_bytes(block, x, weights), 'save="inputs"': kept_bytes(frugal, x, weights)}
gradients, expected = (torch.autograd.grad(four(f, x, weights).square().mean(), weights) for f in (frugal, block))
torch.testing.assert_close(gradients, expected, rtol=1e-3, atol=1e-5)
print({name: f"{count / 1e6:.2f} MB" for name, count in kept.items()})

figure, axis = plt.subplots(figsize=(5, 3), layout="constrained")
axis.bar(list(kept), [count / 1e6 for count in kept.values()])
axis.set(ylabel="MB kept for the backward pass")
figure.show()
