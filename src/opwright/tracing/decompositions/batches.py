"""Products with one operand for all of a batch, and ones on a diagonal: what `vmap` and Jacobians make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.tracing.decompositions.outer_products import outer

aten = torch.ops.aten


def _batched_product(left: torch.Tensor, right: torch.Tensor) -> Any:
    """One product where an operand is expanded over the batch, of the rows of all the others; an outer product."""
    if (products := outer(left, right)) is not NotImplemented:
        return products
    if _is_expanded(right):
        rows = left.reshape(left.shape[0] * left.shape[1], left.shape[2])
        return torch.mm(rows, right.select(0, 0)).reshape(left.shape[0], left.shape[1], right.shape[2])
    if _is_expanded(left):
        return _batched_product(right.transpose(1, 2), left.transpose(1, 2)).transpose(1, 2)
    return NotImplemented


def _is_expanded(operand: torch.Tensor) -> bool:
    stride = operand.stride(0)
    return isinstance(stride, int) and stride == 0


def _diagonal_scatter(x: torch.Tensor, source: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A choice by indices, which can be fused, where the diagonal has an element in each column of matrices."""
    if (dim1 % x.dim(), dim2 % x.dim()) != (x.dim() - 2, x.dim() - 1) or source.shape[-1] != x.shape[-1]:
        return NotImplemented
    rows, columns = torch.arange(x.shape[-2]), torch.arange(x.shape[-1])
    return torch.where(columns - rows.unsqueeze(1) == offset, source.to(x.dtype).unsqueeze(-2), x)


BATCHES: Mapping[OpOverload, Callable[..., Any]] = {
    aten.bmm.default: _batched_product,
    aten.diagonal_scatter.default: _diagonal_scatter,
}
