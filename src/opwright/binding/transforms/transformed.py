"""The interface of an operator's transforms."""

from __future__ import annotations

from typing import Any, Protocol

from opwright.binding.rungs import RungName
from opwright.derivation.batched import Randomness

Served = tuple[Any, RungName | None]
"""A result, and the rung that computed it."""


class Transformable(Protocol):
    """The interface of an operator."""

    @property
    def last_rung(self) -> RungName | None:
        """The rung that served the last call."""

    @property
    def transforms(self) -> Transformed:
        """Its transforms."""

    def __call__(self, *args: Any) -> Any:
        """Run it on arguments in order."""


class Transformed(Protocol):
    """The transforms of one operator, which are operators."""

    def backward(
        self, wanted: tuple[int, ...], places: tuple[int, ...], tangents: tuple[int, ...], outputs: int, /
    ) -> Transformable:
        """(arguments…, cotangents…) → gradients of the arguments at `wanted`."""

    def jvp(self, moving: tuple[int, ...]) -> Transformable:
        """(arguments…, tangents of those at `moving`…) → results and tangents."""

    def batched(self, positions: tuple[int, ...], randomness: Randomness) -> Transformable:
        """The operator over the first dimension of the arguments at `positions`."""
