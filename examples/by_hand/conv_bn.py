"""A convolution and a batch norm as one operator that keeps nothing but its arguments.

opwright check examples/by_hand/conv_bn.py:conv_bn

Beside each operator stands what one writes without opwright: an `autograd.Function` with the formulas of its gradients.
The pair by hand keeps the input and the weight, and runs the convolution again in its backward pass. `save="inputs"`
derives the same, with a second derivative that the functions by hand do not have.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

import opwright

EPS = 1e-3
AXES = (0, 2, 3)


@opwright.operator(name="by_hand::conv2d", samples=opwright.shapes("2 3 6 5", "4 3 3 2"))
def conv2d(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """A convolution with stride 1, without padding and bias."""
    return F.conv2d(x, weight)


@opwright.operator(name="by_hand::batch_norm", samples=opwright.shapes("16 3 4 5"))
def batch_norm(x: torch.Tensor) -> torch.Tensor:
    """A batch norm in training: the unbiased deviation of each channel, plus an epsilon outside of the root."""
    mean = x.mean(AXES, keepdim=True)
    return (x - mean) / (x.var(AXES, keepdim=True).sqrt() + EPS)


@opwright.operator(name="by_hand::conv_bn", samples=opwright.shapes("2 3 6 5", "4 3 3 2"), save="inputs")
def conv_bn(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Both; the backward pass runs the convolution again."""
    return batch_norm.reference(F.conv2d(x, weight))


class FusedConvBN(torch.nn.Module):
    """A module around the pair.

    Args:
        inputs: How many channels it takes.
        outputs: How many it gives.
        kernel: Height and width of the kernel.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        bound = (inputs * kernel * kernel) ** -0.5
        self.weight = torch.nn.Parameter(torch.empty(outputs, inputs, kernel, kernel).uniform_(-bound, bound))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve and normalise."""
        return conv_bn(x, self.weight)

    def extra_repr(self) -> str:
        """The sizes."""
        outputs, inputs, kernel, _ = self.weight.shape
        return f"{inputs}, {outputs}, kernel={kernel}"


class Conv2d(torch.autograd.Function):
    """Its gradients are convolutions too. The backward pass by hand cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return F.conv2d(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return convolution_gradients(gradient, *ctx.saved_tensors)


class BatchNorm(torch.autograd.Function):
    """It keeps its argument, and computes the mean and the deviation again."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return batch_norm.reference(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return batch_norm_gradient(gradient, *ctx.saved_tensors)


class ConvBatchNorm(torch.autograd.Function):
    """It keeps what the convolution takes, and not what it gives."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return conv_bn.reference(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, weight = ctx.saved_tensors
        return convolution_gradients(batch_norm_gradient(gradient, F.conv2d(x, weight)), x, weight)


def convolution_gradients(
    gradient: torch.Tensor, x: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Those of input and weight: dX = conv_transpose(g, W), and dW = conv(Xᵀ, gᵀ)ᵀ, with ᵀ of batch and channels."""
    of_weight = F.conv2d(x.transpose(0, 1), gradient.transpose(0, 1)).transpose(0, 1)
    return F.conv_transpose2d(gradient, weight), of_weight


def batch_norm_gradient(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """That of the argument: through the numerator, the mean and the deviation."""
    count = x.numel() // x.shape[1]
    centred = x - x.mean(AXES, keepdim=True)
    deviation = (centred.square().sum(AXES, keepdim=True) / (count - 1)).sqrt()
    scaled = gradient / (deviation + EPS)
    of_deviation = -(scaled * centred).sum(AXES, keepdim=True) / (deviation + EPS)
    through_deviation = of_deviation / (deviation * (count - 1)) * centred
    return scaled - scaled.mean(AXES, keepdim=True) + through_deviation
