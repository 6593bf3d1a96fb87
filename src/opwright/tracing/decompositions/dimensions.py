"""The dimensions that an operation is given, as torch counts them."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def dimensions_of(x: torch.Tensor, dim: int | Sequence[int] | None) -> list[int]:
    """The dimensions meant, in order; none, and none in the list, means all. A number has 0 and -1, which are none.

    Raises:
        IndexError: If there is no such dimension, or it is there twice: torch refuses it in words of its own.
    """
    given, rank = [dim] if isinstance(dim, int) else list(dim or range(x.dim())), max(x.dim(), 1)
    found = {dimension % rank for dimension in given if -rank <= dimension < rank}
    if len(found) < len(given):
        raise IndexError(f"{given} are no dimensions of a tensor of {x.dim()}")
    return sorted(found) if x.dim() else []
