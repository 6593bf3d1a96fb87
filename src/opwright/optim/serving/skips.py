"""Skips: steps that a GradScaler may call off, which a GPU decides by itself and the processor learns later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from opwright.optim.definition import STEP


class Skip:
    """Whether gradients of a step overflowed, so that nothing may change.

    Args:
        found: A tensor of one element: not zero if they did.
    """

    def __init__(self, found: torch.Tensor) -> None:
        self._found = found.detach().reshape(())
        self._there: dict[torch.device, torch.Tensor] = {}

    def now(self) -> bool:
        """Wait for it."""
        return bool(self._found)

    def on(self, device: torch.device) -> torch.Tensor:
        """Where kernels of a device read it: a float32."""
        if device not in self._there:
            self._there[device] = self._found.to(device, torch.float32, non_blocking=True)
        return self._there[device]

    def later(self) -> Later:
        """What tells it when the device has come to it."""
        return Later(self._found)


class Later:
    """A number of a device on its way to the processor.

    Args:
        number: It.
    """

    def __init__(self, number: torch.Tensor) -> None:
        self._arrived: torch.cuda.Event | None = None
        if not number.is_cuda:
            self._number = number.clone()
            return
        self._number = torch.empty((), dtype=number.dtype, pin_memory=True)
        self._number.copy_(number, non_blocking=True)
        self._arrived = torch.cuda.Event()
        self._arrived.record(torch.cuda.current_stream(number.device))

    def is_true(self) -> bool:
        """Wait until it is there."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return bool(self._number)


class CalledOff:
    """A step whose kernels were launched and which may have been called off there.

    Args:
        later: Tells whether it was.
        states: Of the parameters of these kernels, whose steps were counted.
    """

    def __init__(self, later: Later, states: Sequence[dict[str, Any]]) -> None:
        self._later = later
        self._states = states

    def settle(self) -> bool:
        """Whether the step was called off; it is not counted then."""
        if not self._later.is_true():
            return False
        for state in self._states:
            state[STEP] -= 1
        return True
