"""The thread state around a function, which it must not change: context variables and torch's modes."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Mode:
    """A global setting of torch.

    Attributes:
        name: Its name in messages.
        ask: Returns its value.
        tell: Sets its value.
    """

    name: str
    ask: Callable[[], Any]
    tell: Callable[[Any], Any]


MODES = (
    Mode("whether gradients are recorded", torch.is_grad_enabled, torch._C._set_grad_enabled),
    Mode("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Mode("the number of torch's threads", torch.get_num_threads, torch.set_num_threads),
    Mode(
        "whether torch's algorithms are deterministic",
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Those of a thread, as they were."""

    modes: tuple[Any, ...]
    variables: dict[contextvars.ContextVar[Any], Any]

    @staticmethod
    def now() -> Surroundings:
        """Those of this thread."""
        return Surroundings(tuple(mode.ask() for mode in MODES), dict(contextvars.copy_context().items()))

    def changed(self, is_known: Callable[[Any], bool]) -> str | None:
        """What is different now on this thread; None if nothing is.

        Args:
            is_known: Whether the function can reach a context variable; libraries have their own.
        """
        for mode, before in zip(MODES, self.modes, strict=True):
            if mode.ask() != before:
                return mode.name
        now = dict(contextvars.copy_context().items())
        changed = (variable for variable, value in now.items() if self.variables.get(variable, self) is not value)
        names = [variable.name for variable in changed if is_known(variable)]
        return f"the context variable {names[0]}" if names else None

    def put_back(self) -> None:
        """Restore torch's modes; the context of a trace ends with it."""
        for mode, before in zip(MODES, self.modes, strict=True):
            if mode.ask() != before:
                mode.tell(before)
