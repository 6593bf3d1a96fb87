"""A matrix of int8 codes and a scale for each row, whose product is an operator of opwright."""

from __future__ import annotations

import torch
from torch import nn

import opwright


@opwright.operator
def scaled_product(x: torch.Tensor, codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x @ codes.to(x.dtype).t()) * scale.t()


class Quantised(opwright.tensors.Wrapper, data=("codes", "scale"), meta=("is_transposed",), dtype="scale"):
    """codes·scale, of codes in int8 and one scale for each row; a linear layer multiplies by it transposed."""

    is_transposed = False

    def densify(self) -> torch.Tensor:
        return self.codes.to(self.scale.dtype) * self.scale


def quantised(matrix: torch.Tensor) -> Quantised:
    scale = matrix.abs().amax(1, keepdim=True) / 127
    return Quantised(torch.round(matrix / scale).to(torch.int8), scale)


def transposed(w: Quantised) -> Quantised:
    return Quantised(w.codes.t(), w.scale.t(), not w.is_transposed)


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    if not isinstance(w, Quantised) or not w.is_transposed or isinstance(x, Quantised):
        return torch.mm(*(t.densify() if isinstance(t, Quantised) else t for t in (x, w)))
    return scaled_product(x, w.codes.t(), w.scale.t())


def product_and_bias(bias: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return product(x, w) + bias


Quantised.rule(transposed, torch.ops.aten.t)
Quantised.rule(product, torch.ops.aten.mm)
Quantised.rule(product_and_bias, torch.ops.aten.addmm.default)

if __name__ == "__main__":
    layer, x = nn.Linear(64, 32), torch.randn(4, 64)
    expected = layer(x)
    layer.weight = nn.Parameter(quantised(layer.weight.detach()), requires_grad=False)
    print(
        layer.weight.codes.dtype, layer.weight.dtype, layer.weight.shape
    )  # torch.int8 torch.float32 torch.Size([32, 64])
    print(bool((layer(x) - expected).abs().max() < 0.03), scaled_product.last_rung)  # True cpp
    layer(x.requires_grad_()).sum().backward()
    print(torch.allclose(x.grad, layer.weight.densify().sum(0).expand(4, 64), atol=1e-6))  # True
