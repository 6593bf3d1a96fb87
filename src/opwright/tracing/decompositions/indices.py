"""What is written at indices or into slices: torch's decompositions, for what its kernels take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.tracing.torch_hooks.fake_mode import core_decompositions

aten = torch.ops.aten
Tensor = torch.Tensor


def _at_positions(func: OpOverload) -> Callable[..., Any]:
    """Torch's decomposition counts negative indices from the end, its kernels refuse them."""

    def rule(x: Tensor, dim: int, index: Tensor, source: Tensor, **factor: Any) -> Any:
        aten._assert_async.msg(torch.all(index >= 0), "an index is negative")
        return core_decompositions()[func](x, dim, index, source, **factor)

    return rule


def _select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Any:
    """What is written takes the dtype of where it is written."""
    return core_decompositions()[aten.select_scatter.default](x, source.to(x.dtype), dim, index)


INDICES: Mapping[OpOverload, Callable[..., Any]] = {
    aten.index_add.default: _at_positions(aten.index_add.default),
    aten.index_copy.default: _at_positions(aten.index_copy.default),
    aten.select_scatter.default: _select_scatter,
}
