"""Tangents of what does not move: zeros that stay zero in a product with an infinity.

PyTorch's formulas for tangents are given tensors of its key `ZeroTensor` for them. A trace does not know that key: in
it they are plain zeros, and 0 · ∞ is NaN.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten

_PRODUCTS = (aten.mul, aten.linalg_cross)
_SUMS = (aten.add, aten.sub)


class ZeroTangents(TorchDispatchMode):
    """While active, products with such a zero are such zeros, as are its views; all else takes it as a plain zero."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._zeros: dict[int, torch.Tensor] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation; its result may be replaced."""
        result = func(*args, **(kwargs or {}))
        if func is aten._efficientzerotensor.default:
            return self._noted(result)
        left, right = (self._is_zero(args, position) for position in (0, 1))
        if not (left or right):
            return result
        packet = func.overloadpacket
        if func.is_view:
            return tree_map_only(torch.Tensor, self._noted, result)
        is_zero = packet in _PRODUCTS or (packet is aten.div and left and not right)
        if is_zero or (packet in _SUMS and left and right):
            return self._noted(torch.zeros_like(result))
        if packet in _SUMS and right and args[0].shape == result.shape and args[0].dtype is result.dtype:
            return args[0]
        return result

    def _is_zero(self, args: Any, position: int) -> bool:
        return len(args) > position and id(args[position]) in self._zeros

    def _noted(self, zero: torch.Tensor) -> torch.Tensor:
        self._zeros[id(zero)] = zero
        return zero
