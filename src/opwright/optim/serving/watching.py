"""Watching: whether anything has moved since the last step, asked in C++ if the hot path is built."""

from __future__ import annotations

from typing import Any

import torch

from opwright.binding.environment import PLAIN_TYPES
from opwright.binding.native import native
from opwright.optim.serving.kernels import Watched
from opwright.settings import Settings


class Watching:
    """Makes what watches a plan, as soon as the hot path is built."""

    def __init__(self) -> None:
        self._native: Any = None

    def equip(self, native: Any) -> None:
        """Use the hot path from now on."""
        self._native = native

    def look(self, lists: list[list[torch.Tensor]], kept: dict[torch.Tensor, Any]) -> Watched | None:
        """Look at parameters, their gradients and their states.

        Args:
            lists: The parameters of each group.
            kept: The states of all.

        Returns:
            What tells whether they are still there; None if only Python can, as for subclasses of tensors.
        """
        if self._native is None:
            native.equip(self, Settings.from_environment())
        if self._native is None:
            return None
        watched = self._native.Watched(PLAIN_TYPES)
        return watched if watched.look(lists, kept) else None


watching = Watching()
