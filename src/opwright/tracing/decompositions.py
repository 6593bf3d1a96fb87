"""Decompositions of our own, before torch's: what only kernels and plain library calls should be left of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten


def _add_product(product: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """beta·added + alpha·product(left, right): the sum is fused into whatever follows."""

    def rule(
        added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: float = 1, alpha: float = 1
    ) -> torch.Tensor:
        result = product(left, right)
        result = result if alpha == 1 else result * alpha
        if beta == 0:
            return result
        return result + (added if beta == 1 else added * beta)

    return rule


OWN_DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    aten.addmm.default: _add_product(aten.mm.default),
    aten.baddbmm.default: _add_product(aten.bmm.default),
}
