"""Widened: a definition without the roundings that it asks for inside, as Muon does for its iteration.

Kernels and eager differ from it by rounding alone, and finite differences see its slopes, not steps of bfloat16.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Widened(TorchDispatchMode):
    """Conversions to narrower floating dtypes convert to float64."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation."""
        given = kwargs or {}
        if func is torch.ops.aten._to_copy.default and _narrows(args[0], given.get("dtype")):
            given = {**given, "dtype": torch.float64}
        return func(*args, **given)


def _narrows(tensor: torch.Tensor, dtype: torch.dtype | None) -> bool:
    return tensor.dtype.is_floating_point and dtype is not None and dtype.is_floating_point
