"""What FSDP2 asks of a parameter: which tensors to gather, and what to make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from opwright.errors import WrapperRefused
from opwright.tensors.wrapper.opening import Held

_HINT = "define fsdp_pre_all_gather and fsdp_post_all_gather in the class"


class Gathered(Held):
    """A mixin: each of a wrapper's tensors is gathered on its own.

    A type whose tensors are not all cut along their first dimension, such as one scale for a whole matrix, overrides
    both methods.
    """

    __slots__ = ()

    def fsdp_pre_all_gather(
        self, mesh: Any, outer_size: torch.Size, outer_stride: tuple[int, ...], module: Any, mp_policy: Any
    ) -> tuple[tuple[torch.Tensor, ...], Any]:
        """The tensors to gather, as many rows in every process, in the dtype of mixed precision; and the metadata.

        Raises:
            WrapperRefused: If one of them has another shape than the wrapper, or they are cut along another dimension
                than the first.
        """
        kind, shape = type(self).__name__, self.shape  # type: ignore[attr-defined]
        data = tuple(getattr(self, name) for name in self.names.data)
        if any(tensor.shape != shape for tensor in data):
            raise WrapperRefused(
                f"{kind} holds a tensor of another shape, and so does not say how it is gathered", hint=_HINT
            )
        if shape[1:] != outer_size[1:]:
            raise WrapperRefused(
                f"{kind} of shape {tuple(outer_size)} is cut along another dimension than the first", hint=_HINT
            )
        shown: torch.dtype = self.dtype  # type: ignore[attr-defined]
        if mp_policy.param_dtype is not None:
            data = tuple(tensor.to(mp_policy.param_dtype) if tensor.dtype == shown else tensor for tensor in data)
        rows = -(-outer_size[0] // mesh.size())
        return tuple(_padded(tensor, rows) for tensor in data), type(self).metadata_of((self,))

    def fsdp_post_all_gather(
        self, gathered: Sequence[torch.Tensor], metadata: Any, param_dtype: torch.dtype, *, out: Any = None
    ) -> Any:
        """The whole parameter, and what to free with it; with `out`, its memory is filled already."""
        return None if out is not None else (type(self).made(gathered, metadata), tuple(gathered))


def _padded(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """A tensor with zeros below: the last processes have fewer rows where these cannot be divided."""
    if tensor.shape[0] == rows:
        return tensor
    padding = tensor.new_zeros(rows - tensor.shape[0], *tensor.shape[1:])
    return torch.cat([tensor, padding])
