"""Where a Python integer that changes from call to call may stand in an operation, and how large it may be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from opwright.tracing.number_functions import Bounds

_LARGEST_HALF = 65504


def sizes_in(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[torch.SymInt]:
    """Symbolic integers where an operation wants a size, a dimension or an index, and not a value to compute with."""
    parameters = func._schema.arguments
    given = [*zip(parameters, args, strict=False), *((p, kwargs[p.name]) for p in parameters if p.name in kwargs)]
    for parameter, value in given:
        if "Tensor" not in str(parameter.type) and "number" not in str(parameter.type):
            yield from (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.SymInt))


def integers_held_by(*values: Any) -> Bounds | None:
    """The integers that every tensor among some values can hold; None if those of 64 bits are.

    Beyond them torch raises in places, and wraps around in others.
    """
    dtypes = {leaf.dtype for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)}
    held = [bounds for dtype in dtypes if (bounds := _held(dtype)) is not None]
    return Bounds(max(each.low for each in held), min(each.high for each in held)) if held else None


def _held(dtype: torch.dtype) -> Bounds | None:
    if dtype is torch.float16:
        return Bounds(-_LARGEST_HALF, _LARGEST_HALF)
    if dtype in (torch.int64, torch.bool) or dtype.is_floating_point or dtype.is_complex:
        return None
    limits = torch.iinfo(dtype)
    return Bounds(limits.min, limits.max)
