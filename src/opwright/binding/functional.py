"""A mutating reference as a functional one, which changes copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.errors import NoKernel
from opwright.tracing.interface.memory import memory_of
from opwright.tracing.torch_hooks.functorch import wrapped_by_levels


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
        """Call the reference on copies.

        Raises:
            NoKernel: If it changes more than the elements of one: its shape, its order in memory, or its memory.
        """
        given = [argument.clone() if p in self._mutated else argument for p, argument in enumerate(arguments)]
        copies = [given[position] for position in self._mutated]
        before = [_lies(copy) for copy in copies]
        returned = self.__wrapped__(*given)
        if [_lies(copy) for copy in copies] != before:
            raise NoKernel(
                "the function gives an argument another shape, or other memory",
                hint="change elements only, and return what has another shape",
            )
        return returned, copies

    def fallback(self, *arguments: Any) -> Done:
        """Call the reference on the arguments themselves."""
        return Done(getattr(self.__wrapped__, "fallback", self.__wrapped__)(*arguments))


def _lies(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Which memory a tensor shows, and how; under transforms, that of the tensor that they wrap."""
    inside = wrapped_by_levels(tensor)
    return memory_of(inside), tuple(inside.shape), inside.stride(), inside.storage_offset()
