"""Results in the form that torch's dispatcher needs; wheels contain this module, so it imports torch only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

FUNCTION_TRANSFORMS = "FuncTorchDynamicLayerFrontMode"  # the dispatch key of every call under `torch.func`


def as_schema_returns(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but a tuple of one tensor becomes the tensor, as in its schema."""

    def called(*args: Any, **kwargs: Any) -> Any:
        returned = function(*args, **kwargs)
        return returned[0] if isinstance(returned, tuple) and len(returned) == 1 else returned

    return called


def owned(returned: Any) -> Any:
    """The results of a reference for the dispatcher: dense as they lie, in memory of their own."""
    return tree_map_only(torch.Tensor, lambda tensor: tensor.clone(memory_format=torch.preserve_format), returned)


def without_values(returned: Any) -> Any:
    """Dense tensors without values, like those returned: the result of a fake kernel."""
    if isinstance(returned, torch.Tensor):
        return torch.empty_like(returned, requires_grad=False)
    return tuple(map(without_values, returned))
