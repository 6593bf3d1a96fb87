"""Places of a batch that a result does not have, where PyTorch reads or writes memory that is not its own."""

from __future__ import annotations

import torch
from torch._C import _functorch as hooks

REMOVES_A_BATCH = torch._functorch.predispatch._remove_batch_dim.__code__
"""The code of what a `vmap` ends with, for each result."""


def is_misplaced(tensor: torch.Tensor, level: int, dimension: int) -> bool:
    """Whether a result of the `vmap` of a level has no batch, and would get one at a dimension that is none of its own.

    PyTorch inserts the size before or after those of the tensor in memory (`_remove_batch_dim`, 2.13): it reads what
    lies there, or the process ends.
    """
    has_batch = hooks.is_batchedtensor(tensor) and hooks.maybe_get_level(tensor) == level
    return not has_batch and not 0 <= dimension <= tensor.dim()
