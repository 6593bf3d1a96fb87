"""What FSDP2 asks of a parameter: which tensors to gather, and what to make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from opwright.errors import WrapperRefused
from opwright.tensors.wrapper.opening import Held


class Gathered(Held):
    """A mixin: each of a wrapper's tensors is gathered on its own.

    A type whose tensors are not all cut along their first dimension, such as one scale for a whole matrix, overrides
    both methods.
    """

    __slots__ = ()

    def fsdp_pre_all_gather(self, mesh: Any) -> tuple[tuple[torch.Tensor, ...], Any]:
        """The tensors to gather, and the metadata.

        Raises:
            WrapperRefused: If one of them has another shape than the wrapper.
        """
        data = tuple(getattr(self, name) for name in self.names.data)
        if any(tensor.shape != self.shape for tensor in data):  # type: ignore[attr-defined]
            raise WrapperRefused(
                f"{type(self).__name__} holds a tensor of another shape, and so does not say how it is gathered",
                hint="define fsdp_pre_all_gather and fsdp_post_all_gather in the class",
            )
        return data, type(self).metadata_of((self,))

    def fsdp_post_all_gather(
        self, gathered: Sequence[torch.Tensor], metadata: Any, param_dtype: torch.dtype, *, out: Any = None
    ) -> Any:
        """The whole parameter, and what to free with it; with `out`, its memory is filled already."""
        return None if out is not None else (type(self).made(gathered, metadata), tuple(gathered))
