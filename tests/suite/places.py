"""Tensors on another device that lie there as they lie here."""

from __future__ import annotations

import torch


def on_device(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """A leaf with the same strides and offset, in memory of its own; the tensor itself where it is there already."""
    if tensor.device.type == torch.device(device).type:
        return tensor
    elements = tensor.untyped_storage().nbytes() // tensor.itemsize
    memory = tensor.detach().as_strided((elements,), (1,), 0).to(device)
    return memory.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).requires_grad_(
        tensor.requires_grad
    )
