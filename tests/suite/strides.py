"""Strides as eager gives them; a result that leaves gaps or repeats elements in eager is dense in the same order."""

from __future__ import annotations

import torch


def of_dense(tensor: torch.Tensor) -> tuple[int | None, ...]:
    """The strides of a dense tensor that lies as this one; None for dimensions of one element, which have any."""
    strides = torch.empty_like(tensor, device="meta").stride()
    return tuple(stride if size != 1 else None for size, stride in zip(tensor.shape, strides, strict=True))


def stride_difference(mine: torch.Tensor, eager: torch.Tensor) -> str:
    """How a result lies otherwise than eager's, in words; empty if it does not."""
    if mine.layout is not torch.strided or eager.layout is not torch.strided or not mine.numel():
        return ""
    found = tuple(stride if size != 1 else None for size, stride in zip(mine.shape, mine.stride(), strict=True))
    expected = of_dense(eager)
    return "" if found == expected else f"strides {mine.stride()} of sizes {tuple(mine.shape)}; eager: {eager.stride()}"
