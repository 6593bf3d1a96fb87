"""The handwritten part of an operator: a forward pass, and perhaps a backward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from opwright.handwritten.expected import Tensors


# Of these two there is one for each call; frozen, each would cost a microsecond more.
@dataclass(slots=True)
class Made:
    """The results of a forward pass.

    Attributes:
        outputs: The results.
        kept: Tensors for the backward pass, besides the arguments.
        state: Whatever else is for the backward pass.
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
        state: What else it kept.
        cotangents: The cotangent of each result; None if nothing flows there.
        wanted: Positions of the arguments whose gradients are asked for.
    """

    args: Sequence[Any]
    kept: Sequence[torch.Tensor]
    outputs: Sequence[tuple[tuple[int, ...], torch.dtype]]
    state: Any
    cotangents: Sequence[torch.Tensor | None]
    wanted: tuple[int, ...]


class Passes(Protocol):
    """The passes of one rung that is written by hand."""

    def forward(self, args: Sequence[Any], expected: Tensors, *, recording: bool) -> Made:
        """Compute the results, without recording anything for autograd.

        Args:
            args: The arguments, in order; those that require gradients still do.
            expected: What the reference returns for them.
            recording: Whether a backward pass may follow.

        Raises:
            NoKernel: If it is not written for these arguments.
        """

    def backward(self, recorded: Recorded) -> Mapping[int, torch.Tensor | None]:
        """The gradients by position of their arguments; those that are not in it are derived."""

    def examine(self) -> None:
        """Raise an OpwrightError where the rung cannot be had."""

    def count(self) -> int:
        """How many instances are loaded."""

    def source(self) -> str:
        """What the author wrote, and what is written to call it.

        Raises:
            RungMissing: If it cannot be read.
        """
