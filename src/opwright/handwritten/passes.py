"""A handwritten forward pass, with or without a backward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from opwright.handwritten.expected import Tensors


# Every call makes one of each; as frozen classes, each would take a microsecond longer.
@dataclass(slots=True)
class Made:
    """The results of a forward pass.

    Attributes:
        outputs: The results.
        kept: Tensors for the backward pass, besides the arguments.
        state: Anything else for the backward pass.
    """

    outputs: tuple[torch.Tensor, ...]
    kept: tuple[torch.Tensor, ...] = ()
    state: Any = None


@dataclass(slots=True)
class Recorded:
    """The inputs of a backward pass.

    Attributes:
        args: The arguments of the forward pass.
        kept: The tensors that it kept.
        outputs: The sizes and dtypes of its results.
        state: Anything else that it kept.
        cotangents: The cotangent of each result; None if it has none.
        wanted: Positions of the arguments whose gradients are needed.
    """

    args: Sequence[Any]
    kept: Sequence[torch.Tensor]
    outputs: Sequence[tuple[tuple[int, ...], torch.dtype]]
    state: Any
    cotangents: Sequence[torch.Tensor | None]
    wanted: tuple[int, ...]


class Passes(Protocol):
    """The passes of one handwritten rung."""

    def forward(self, args: Sequence[Any], expected: Tensors, *, recording: bool) -> Made:
        """Compute the results, without recording for autograd.

        Args:
            args: The arguments, in order; those that require gradients still do.
            expected: What the reference returns for them.
            recording: Whether a backward pass may follow.

        Raises:
            NoKernel: If it does not support these arguments.
        """

    def backward(self, recorded: Recorded) -> Mapping[int, torch.Tensor | None]:
        """The gradients by position of their arguments; missing ones are derived."""

    def examine(self) -> None:
        """Raise an OpwrightError if the rung cannot be built here."""

    def count(self) -> int:
        """How many instances are loaded."""

    def source(self) -> str:
        """The author's sources, and the code that calls them.

        Raises:
            RungMissing: If it cannot be read.
        """
