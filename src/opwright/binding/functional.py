"""A mutating reference as a functional one, which changes copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from opwright.errors import LeftToFunction, NoKernel
from opwright.tracing.interface.aliases import AS_TRACED
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
        setattr(self, AS_TRACED, partial(_as_traced, mutated))  # an attribute, which wrappers keep

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


def _as_traced(
    mutated: Sequence[int],
    made: tuple[Any, list[torch.Tensor]],
    arguments: Sequence[Any],
    is_copy: Callable[[Any, Any], bool],
) -> tuple[Any, list[torch.Tensor | None]]:
    """What a call has returned in a trace, with None for copies that it left as they were.

    Args:
        mutated: Positions of the arguments that were copied.
        made: What the call returned.
        arguments: Its arguments.
        is_copy: Tells whether a tensor is a copy of another one in the trace, at its end.

    Raises:
        LeftToFunction: If it changes none, and computes nothing.
    """
    returned, copies = made
    pairs = [(copy, arguments[position]) for position, copy in zip(mutated, copies, strict=True)]
    unchanged = {id(copy): argument for copy, argument in pairs if is_copy(copy, argument)}
    if unchanged:
        returned = tree_map_only(torch.Tensor, lambda tensor: unchanged.get(id(tensor), tensor), returned)
    if len(unchanged) == len(copies) and not computes(returned, arguments):
        raise LeftToFunction(
            "the function changes none of its arguments, and computes nothing",
            hint="change an argument, or return a tensor that it computes",
        )
    return returned, [None if id(copy) in unchanged else copy for copy in copies]


def write_back(arguments: Sequence[Any], mutated: Sequence[int], values: Sequence[torch.Tensor | None]) -> None:
    """Give arguments their new values; None stands for one that the call leaves as it is."""
    for position, value in zip(mutated, values, strict=True):
        if value is not None:
            arguments[position].copy_(value)


def computes(returned: Any, arguments: Sequence[Any]) -> bool:
    """Whether a tensor that is no argument is among what a reference returned."""
    given = set(map(id, arguments))
    return any(isinstance(leaf, torch.Tensor) and id(leaf) not in given for leaf in tree_leaves(returned))
