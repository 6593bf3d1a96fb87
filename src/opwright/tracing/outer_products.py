"""Outer products, which are element-wise work: they are fused into what surrounds them, and computed again for free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten


def _outer(left: torch.Tensor, right: torch.Tensor) -> Any:
    """left[…, M, 1] @ right[…, 1, N]; a size that is a symbol is asked nothing, so that nothing is assumed of it."""
    inner = left.shape[-1]
    return left * right if isinstance(inner, int) and inner == 1 else NotImplemented


OUTER_PRODUCTS: Mapping[OpOverload, Callable[..., Any]] = {aten.mm.default: _outer, aten.bmm.default: _outer}
