"""A mutating reference as a functional one, which changes copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from opwright.errors import LeftToFunction, NoKernel
from opwright.tracing.interface.memory import memory_of
from opwright.tracing.torch_hooks.functorch import wrapped_by_levels


@dataclass(frozen=True, slots=True)
class Done:
    """What the reference returned after it changed the arguments itself."""

    returned: Any


class FunctionalReference:
    """A reference that changes copies, and returns them after its results; None for those that it left as they were."""

    def __init__(self, reference: Callable[..., Any], mutated: Sequence[int]) -> None:
        self.__wrapped__ = reference
        self.__name__ = reference.__name__
        self._mutated = mutated

    def __call__(self, *arguments: Any) -> tuple[Any, list[torch.Tensor | None]]:
        """Call the reference on copies.

        Raises:
            NoKernel: If it changes more than the elements of one: its shape, its order in memory, or its memory.
            LeftToFunction: If it changes none, and computes nothing.
        """
        given = [_copy(argument) if p in self._mutated else argument for p, argument in enumerate(arguments)]
        copies = [given[position] for position in self._mutated]
        before, changes = [_lies(copy) for copy in copies], [_changes(copy) for copy in copies]
        returned = self.__wrapped__(*given)
        if [_lies(copy) for copy in copies] != before:
            raise NoKernel(
                "the function gives an argument another shape, or other memory",
                hint="change elements only, and return what has another shape",
            )
        unchanged = {
            id(copy): arguments[position]
            for position, copy, count in zip(self._mutated, copies, changes, strict=True)
            if count is not None and _changes(copy) == count
        }
        if unchanged:
            returned = tree_map_only(torch.Tensor, lambda tensor: unchanged.get(id(tensor), tensor), returned)
        if len(unchanged) == len(copies) and not _computes(returned, arguments):
            raise LeftToFunction(
                "the function changes none of its arguments, and computes nothing",
                hint="change an argument, or return a tensor that it computes",
            )
        return returned, [None if id(copy) in unchanged else copy for copy in copies]

    def fallback(self, *arguments: Any) -> Done:
        """Call the reference on the arguments themselves."""
        return Done(getattr(self.__wrapped__, "fallback", self.__wrapped__)(*arguments))


def _lies(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Which memory a tensor shows, and how; under transforms, that of the tensor that they wrap."""
    inside = wrapped_by_levels(tensor)
    return memory_of(inside), tuple(inside.shape), inside.stride(), inside.storage_offset()


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy whose changes are counted, in inference mode too."""
    with torch._C._InferenceMode(False) if torch.is_inference_mode_enabled() else nullcontext():
        return tensor.clone()


def _changes(tensor: torch.Tensor) -> int | None:
    """How often the elements of a tensor were changed; None if that is not counted."""
    inside = wrapped_by_levels(tensor)
    return None if inside.is_inference() else inside._version


def _computes(returned: Any, arguments: Sequence[Any]) -> bool:
    """Whether a tensor that is no argument is among what a reference returned."""
    given = set(map(id, arguments))
    return any(isinstance(leaf, torch.Tensor) and id(leaf) not in given for leaf in tree_leaves(returned))
