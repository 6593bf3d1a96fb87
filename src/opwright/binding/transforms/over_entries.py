"""A call under `vmap` by one call for each entry of the batch, below that level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from opwright.binding.returned import Returned
from opwright.binding.transforms.transformed import Served, Transformable
from opwright.tracing.torch_hooks import functorch


def over_entries(operator: Transformable, args: Sequence[Any]) -> Served:
    """Call an operator for each entry of the innermost level, which is a `vmap`; each draws the same random numbers.

    Args:
        operator: The operator.
        args: The arguments, in order.
    """
    level, generator = functorch.innermost(), torch.get_rng_state()
    apart = [level.unbatched(arg) if isinstance(arg, torch.Tensor) else (arg, None) for arg in args]
    with level.below():
        if all(dimension is None for _, dimension in apart):
            return operator(*[value for value, _ in apart]), operator.last_rung
        entries = []
        for entry in range(level.batch_size):
            torch.set_rng_state(generator)
            given = [value if dim is None else value.select(dim, entry) for value, dim in apart]
            entries.append(Returned(operator(*given)))
        tensors = [torch.stack(entry) for entry in zip(*[each.tensors for each in entries], strict=True)]
    return entries[0].rebuilt([level.add_batch(tensor) for tensor in tensors]), operator.last_rung
