"""What an operator returned, laid out flat, and put together again with other tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten


class Returned:
    """A result. Tensors and tuples of them are the rule, which torch's trees would take some µs for.

    Attributes:
        leaves: What is in it.
        tensors: Where the tensors stand among the leaves.
    """

    __slots__ = ("_layout", "leaves", "tensors")

    def __init__(self, result: Any) -> None:
        self.leaves: list[Any]
        self._layout: Any
        if isinstance(result, torch.Tensor):
            self.leaves, self._layout = [result], None
        elif type(result) is tuple and all(isinstance(member, torch.Tensor) for member in result):
            self.leaves, self._layout = list(result), tuple
        else:
            self.leaves, self._layout = tree_flatten(result)
        self.tensors = [place for place, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]

    def rebuilt(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The same structure with other tensors, one for each of its own."""
        if self._layout is None:
            return tensors[0]
        if self._layout is tuple:
            return tuple(tensors)
        leaves = list(self.leaves)
        for place, tensor in zip(self.tensors, tensors, strict=True):
            leaves[place] = tensor
        return tree_unflatten(leaves, self._layout)
