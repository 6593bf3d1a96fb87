"""Autograd at the border: gradients flow into a wrapper from the tensor that it was made of, and out again."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from opwright.tensors.wrapper.opening import Held


class Wrap(Function):
    """Wrap a tensor that requires gradients."""

    @staticmethod
    def forward(ctx: Any, kind: type[Held], metadata: Any, tensor: torch.Tensor) -> Any:
        """The wrapper."""
        return kind.made((tensor.detach(),), metadata)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """What is inside of the cotangent."""
        (cotangent,) = cotangents
        return None, None, Open.apply(cotangent) if isinstance(cotangent, Held) else cotangent  # type: ignore[no-untyped-call]


class Open(Function):
    """Take the tensor out of a wrapper."""

    @staticmethod
    def forward(ctx: Any, wrapper: Any) -> torch.Tensor:
        """The tensor."""
        ctx.kind, ctx.carried = type(wrapper), type(wrapper).metadata_of((wrapper,))
        inside: torch.Tensor = getattr(wrapper, wrapper.names.data[0])
        return inside.detach()

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """The cotangent in a wrapper with the same metadata."""
        (cotangent,) = cotangents
        if isinstance(cotangent, Held):
            return cotangent
        return Wrap.apply(ctx.kind, ctx.carried, cotangent)  # type: ignore[no-untyped-call]
