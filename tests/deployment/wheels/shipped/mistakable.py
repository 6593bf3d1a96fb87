"""An operator whose parameters and variables are called like words of emitted code."""

import torch
from torch import Tensor

import opwright


@opwright.operator(samples=opwright.shapes("B S", "S", "B 1", B=4, S=24))
def mistakable(stack: Tensor, tensors: Tensor, end: Tensor, number: float = 0.5) -> Tensor:
    begin = stack.mean(-1, keepdim=True)
    row = torch.softmax((stack - begin) * tensors * number, -1)
    return row * end
