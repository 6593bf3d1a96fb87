"""What kernels may change of the tensors of a call whose forward changes buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from opwright.errors import NoKernel
from opwright.tracing.interface.memory import may_overlap_itself, memory_of


def refuse_shared(leaves: Sequence[Any], mutated: Sequence[int]) -> None:
    """Refuse kernels if a mutated tensor shares memory with another.

    Raises:
        NoKernel: If it does, or if torch does not allow the change.
    """
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]
    memories = [memory_of(tensor) for tensor in tensors]
    for position in mutated:
        target = leaves[position]
        if target.layout != torch.strided or memories.count(memory_of(target)) > 1:
            raise NoKernel("a buffer that it changes shares memory with another tensor", hint="register its .clone()")
        if may_overlap_itself(target):
            fact = "a buffer that it changes has several elements in one place of memory"
            raise NoKernel(fact, hint="register its .clone()")
        if torch.is_grad_enabled() and target.requires_grad:
            raise NoKernel("a buffer that it changes requires a gradient", hint="call .requires_grad_(False) on it")
