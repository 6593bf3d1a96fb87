"""What surrounds a function on its thread: context variables, and the modes of torch. It leaves them as they were."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Mode:
    """Something that torch is told once, for all that comes after.

    Attributes:
        name: What a reader knows it by.
        ask: Gives what it is.
        tell: Has it be that.
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
        """Have torch's modes be as they were; the context of a trace ends with it."""
        for mode, before in zip(MODES, self.modes, strict=True):
            if mode.ask() != before:
                mode.tell(before)
