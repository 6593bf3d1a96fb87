"""Results as torch's dispatcher wants them; a wheel carries this module, so torch is all it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

FUNCTION_TRANSFORMS = "FuncTorchDynamicLayerFrontMode"  # the key that every call goes through under `torch.func`


def as_schema_returns(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with a tuple of one tensor as the tensor, which is how a schema spells it."""

    def called(*args: Any, **kwargs: Any) -> Any:
        returned = function(*args, **kwargs)
        return returned[0] if isinstance(returned, tuple) and len(returned) == 1 else returned

    return called


def row_major(returned: Any) -> Any:
    """The results as every rung gives them to the dispatcher: dense, row by row, in memory of their own."""
    return tree_map_only(torch.Tensor, lambda tensor: tensor.clone(memory_format=torch.contiguous_format), returned)


def without_values(returned: Any) -> Any:
    """Tensors like those returned, row by row, whoever computes them: what a fake kernel gives."""
    if isinstance(returned, torch.Tensor):
        return torch.empty(returned.shape, dtype=returned.dtype, device=returned.device)
    return tuple(map(without_values, returned))
