"""The dimensions of an operation's arguments, by torch's rules."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def dimensions_of(x: torch.Tensor, dim: int | Sequence[int] | None) -> list[int]:
    """The dimensions, in order; None or an empty list means all. For a 0-d tensor, 0 and -1 are allowed and mean none.

    Raises:
        IndexError: If a dimension does not exist or occurs twice; torch raises its own error then.
    """
    given, rank = [dim] if isinstance(dim, int) else list(dim or range(x.dim())), max(x.dim(), 1)
    found = {dimension % rank for dimension in given if -rank <= dimension < rank}
    if len(found) < len(given):
        raise IndexError(f"{given} are no dimensions of a tensor of {x.dim()}")
    return sorted(found) if x.dim() else []
