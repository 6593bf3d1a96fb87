"""Skips: steps that a GradScaler may call off, which a GPU decides by itself and the processor learns later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from opwright.optim.definition import STEP
from opwright.optim.factor import sent


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
            self._there[device] = sent(self._found, device, torch.float32)
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


class Undecided:
    """A step that the GPU may call off, while the processor counts it.

    Args:
        later: Tells whether it was called off.
    """

    def __init__(self, later: Later) -> None:
        self._later = later
        self._counted: list[tuple[dict[str, Any], torch.Tensor, int]] = []

    def count(self, states: Iterable[dict[str, Any]]) -> None:
        """Note that the step was counted for these parameters; nothing else of theirs changes if it is called off."""
        self._counted += [(state, state[STEP], -1) for state in states]

    def is_over(self) -> None:
        """Whoever changes the number of steps from now on decides what it is."""
        self._counted = [(state, step, step._version) for state, step, _ in self._counted]

    def settle(self) -> bool:
        """Whether the step was called off; it is not counted then. Waits for the GPU."""
        if not self._later.is_true():
            return False
        for state, step, version in self._counted:
            if state.get(STEP) is step and version in (-1, step._version):
                step -= 1
        return True
