"""What an operator returned, split into tensors and rebuilt with other tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten


class Returned:
    """A result. Tensors and tuples have a fast path, because torch's trees take some µs.

    Attributes:
        tensors: The tensors in it.
        places: Their positions among its leaves.
    """

    __slots__ = ("_layout", "_leaves", "places", "tensors")

    def __init__(self, result: Any) -> None:
        self._leaves: list[Any]
        self._layout: Any
        if isinstance(result, torch.Tensor):
            self._leaves, self._layout = [result], None
        elif type(result) is tuple and all(isinstance(member, torch.Tensor) for member in result):
            self._leaves, self._layout = list(result), tuple
        else:
            self._leaves, self._layout = tree_flatten(result)
        self.places = tuple([place for place, leaf in enumerate(self._leaves) if isinstance(leaf, torch.Tensor)])
        self.tensors: list[torch.Tensor] = [self._leaves[place] for place in self.places]

    @property
    def is_bare(self) -> bool:
        """Whether it is one tensor."""
        return self._layout is None

    def rebuilt(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The same structure with other tensors, one for each of its own."""
        if self._layout is None:
            return tensors[0]
        if self._layout is tuple:
            return tuple(tensors)
        leaves = list(self._leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        return tree_unflatten(leaves, self._layout)

    def like(self, other: Any) -> list[torch.Tensor]:
        """The tensors in another result of the same structure."""
        if self._layout is None:
            return [other]
        return list(other) if self._layout is tuple else Returned(other).tensors
