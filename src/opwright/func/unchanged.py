"""Tensors that must not change in place between a call and the use of its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves


def refusing_changes(of: str, *values: Any) -> Callable[[], None]:
    """What raises autograd's error once a tensor in these values, as they are now, has been changed in place.

    Args:
        of: The transform, which the message names.
        values: Tensors, and containers of them.
    """
    leaves = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and not leaf.is_inference()]
    versions = [(leaf, leaf._version) for leaf in leaves]

    def refuse() -> None:
        for tensor, version in versions:
            if tensor._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"[{tensor.type()} {[*tensor.shape]}] of {of} is at version {tensor._version}; expected version "
                    f"{version} instead. Hint: change it after the last use of what {of} returned, or pass a copy"
                )

    return refuse
