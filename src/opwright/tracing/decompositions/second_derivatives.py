"""The second derivative of a convolution whose sizes are symbols, which PyTorch 2.11 lacks and 2.13 has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch._C import DispatchKey
from torch._subclasses.fake_tensor import FakeTensor

from opwright.tracing.torch_hooks.fake_mode import LeanFakeTensorMode

aten = torch.ops.aten

_COMPOSITE = DispatchKey.CompositeImplicitAutograd

Three = tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]


@cache
def add_second_derivatives() -> None:
    """Register it for torch's Python dispatcher, for fake tensors of our modes; others get torch's."""
    own = aten._convolution_double_backward.default
    if torch.__version__ >= "2.12" or _COMPOSITE in own.py_kernels:
        return

    def of_convolution(*args: Any) -> Any:
        output = args[3]
        is_ours = isinstance(output, FakeTensor) and isinstance(output.fake_mode, LeanFakeTensorMode)
        return double_backward(*args) if is_ours else own._op_dk(_COMPOSITE, *args)

    own.py_impl(_COMPOSITE)(of_convolution)


def double_backward(
    of_input: torch.Tensor | None,
    of_weight: torch.Tensor | None,
    of_bias: torch.Tensor | None,
    grad_output: torch.Tensor,
    weight: torch.Tensor,
    input: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Three:
    """The gradients of `grad_output`, `input` and `weight` of a convolution's backward pass.

    A convolution is linear in its input and in its weight: each gradient is a convolution, or a gradient of one, where
    one of them is replaced by what flows back to its own gradient.

    Args:
        of_input: What flows back to the gradient of the input; None for nothing.
        of_weight: The same of the weight.
        of_bias: The same of the bias.
        grad_output: What the backward pass was given, as the next two.
        weight: The weight.
        input: The input.
        stride: As for `aten.convolution`, as the next five.
        padding: As there.
        dilation: As there.
        transposed: As there.
        output_padding: As there.
        groups: As there.
        output_mask: Which gradients are asked for.
    """
    how = (stride, padding, dilation, transposed, output_padding, groups)
    outputs = [
        *([] if of_input is None else [aten.convolution(of_input, weight, None, *how)]),
        *([] if of_weight is None else [aten.convolution(input, of_weight, None, *how)]),
        *([] if of_bias is None else [of_bias.view(-1, *[1] * (grad_output.dim() - 2)).expand_as(grad_output)]),
    ]
    grad_grad = sum(outputs[1:], start=outputs[0]) if outputs and output_mask[0] else None
    grad_input = grad_weight = None
    if of_weight is not None and output_mask[1]:
        asked = [True, False, False]
        grad_input = aten.convolution_backward(grad_output, input, of_weight, None, *how, asked)[0]
    if of_input is not None and output_mask[2]:
        asked = [False, True, False]
        grad_weight = aten.convolution_backward(grad_output, of_input, weight, None, *how, asked)[1]
    return grad_grad, grad_input, grad_weight
