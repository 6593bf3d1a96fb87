"""A mutating reference as a functional one, which changes copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Done:
    """What the reference returned after it changed the arguments itself."""

    returned: Any


class FunctionalReference:
    """A reference that changes copies, and returns them after its results."""

    def __init__(self, reference: Callable[..., Any], mutated: Sequence[int]) -> None:
        self.__wrapped__ = reference
        self.__name__ = reference.__name__
        self._mutated = mutated

    def __call__(self, *arguments: Any) -> tuple[Any, list[torch.Tensor]]:
        """Call the reference on copies."""
        given = [argument.clone() if p in self._mutated else argument for p, argument in enumerate(arguments)]
        return self.__wrapped__(*given), [given[position] for position in self._mutated]

    def fallback(self, *arguments: Any) -> Done:
        """Call the reference on the arguments themselves."""
        return Done(getattr(self.__wrapped__, "fallback", self.__wrapped__)(*arguments))
