"""Results of the operations whose layout depends on the device: meta tensors have it as on a GPU.

Torch asks a fake tensor which device it stands for, and takes a meta tensor for one on a GPU. So these are asked on
fake tensors of the processor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from opwright.tracing.torch_hooks.fake_mode import LeanFakeTensorMode

_TOLD_BY_DEVICE = {
    *("aten::_linalg_svd", "aten::linalg_eig", "aten::_linalg_eigh", "aten::linalg_qr"),
    *("aten::_fft_c2c", "aten::_fft_c2r", "aten::_fft_r2c"),
}


class ProcessorFormats(TorchDispatchMode):
    """Lays such results of meta tensors out as on a processor, until the end of the block."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation."""
        given = (args, kwargs or {})
        if func._schema.name not in _TOLD_BY_DEVICE or not all(map(_is_meta, tree_leaves(given))):
            return func(*args, **(kwargs or {}))
        with LeanFakeTensorMode():
            positional, named = tree_map_only(torch.Tensor, lambda tensor: _like(tensor, "cpu"), given)
            made = func(*positional, **named)
        return tree_map_only(torch.Tensor, lambda tensor: _like(tensor, "meta"), made)


def _is_meta(leaf: object) -> bool:
    return not isinstance(leaf, torch.Tensor) or (type(leaf) is torch.Tensor and leaf.is_meta)


def _like(tensor: torch.Tensor, device: str) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
