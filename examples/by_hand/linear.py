"""Linear, y = x Wᵀ + b, on every rung: the documents' `autograd.Function`, C++ over tensors, and kernels for the bias.

opwright check examples/by_hand/linear.py:linear

The product stays with the library on every rung. On a GPU the bias is added by a CUDA kernel over (batch, feature).
"""

import torch

import opwright


@opwright.operator(name="by_hand::add_bias", samples=opwright.shapes("B N", "N", B=(4, 64), N=(5, 256)))
def add_bias(product: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The part of a linear layer that is a kernel of its own."""
    return product + bias


@opwright.operator(
    name="by_hand::linear", samples=opwright.shapes("B M", "N M", "N", B=(4, 16), M=(3, 512), N=(5, 256))
)
def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x[B, M], weight[N, M], bias[N] or None → [B, N]."""
    product = x @ weight.t()
    return product if bias is None else product + bias


@linear.implement("function")
class Linear(torch.autograd.Function):
    """Gradients are computed only where they are asked for."""

    @staticmethod
    def forward(ctx, x, weight, bias=None):  # noqa: ANN001, ANN205
        ctx.save_for_backward(x, weight)
        product = x.mm(weight.t())
        return product if bias is None else add_bias(product, bias)

    @staticmethod
    def backward(ctx, grad_y):  # noqa: ANN001, ANN205
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            grad_y.mm(weight) if of_x else None,
            grad_y.t().mm(x) if of_weight else None,
            grad_y.sum(0) if of_bias else None,
        )


linear.implement("cpp", sources=["linear.cpp"], forward="linear_forward", backward="linear_backward")
add_bias.implement("cpp", sources=["add_bias.cpp"], forward="add_bias")
add_bias.implement(
    "cuda",
    sources=["add_bias.cu"],
    forward="add_bias",
    threads=128,
    blocks=lambda product, bias: (-(-product.shape[1] // 128), product.shape[0]),
)
