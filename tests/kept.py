"""The memory that a graph of autograd keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def kept_bytes(function: Callable[..., Any], arguments: Sequence[torch.Tensor]) -> int:
    """Call a function, and count the storages that it saves for the backward pass, each once."""
    kept: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor  # alive, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        function(*arguments)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
