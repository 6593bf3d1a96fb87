"""What arguments were like: enough to derive for them again, without keeping their memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Likeness:
    """A tensor without its elements.

    Attributes:
        sizes, strides: In elements.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def tensor(self) -> torch.Tensor:
        """A tensor like it, with whatever elements."""
        return torch.empty_strided(self.sizes, self.strides, dtype=self.dtype, device=self.device)


def likenesses(args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments, with a likeness in place of each tensor."""
    return tuple([_of(arg) if isinstance(arg, torch.Tensor) else arg for arg in args])


def alike(kept: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments like those of which likenesses were kept."""
    return tuple([arg.tensor() if isinstance(arg, Likeness) else arg for arg in kept])


def _of(tensor: torch.Tensor) -> Likeness:
    return Likeness(tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device)
