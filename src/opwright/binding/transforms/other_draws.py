"""Which calls under transforms draw other random numbers than one level below, where operators would run them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from opwright.binding.variants.states import Outside
from opwright.tracing.outside.hazards import OutsideUnknown
from opwright.tracing.recording.randomness import draws, draws_along_memory

_DEVICES = ("cpu", "meta")  # whose random numbers a backward pass draws again
_MOST_KNOWN = 512


class OtherDraws:
    """Tells calls of one function that draw from a GPU's generator, or along permuted memory.

    PyTorch's dropout draws row by row under function transforms, and else along memory.

    Args:
        reference: The function.
        outside: What it reads outside of its arguments.
    """

    def __init__(self, reference: Callable[..., Any], outside: Outside) -> None:
        self._reference = reference
        self._outside = outside
        self._known: dict[Hashable, bool] = {}

    def are_in(self, args: Sequence[Any], *, if_unknown: bool = False) -> bool:
        """Whether a call draws so; True if nothing is known of what the function reads.

        Of a function that uses tensors from outside it is unknown; an operator that takes them is asked again.
        """
        leaves, layout = tree_flatten(list(args))
        ask = draws if are_on_gpu(leaves) else draws_along_memory
        try:
            key = (self._outside.now(), layout, ask, if_unknown, *map(_told, leaves))
        except OutsideUnknown:
            return True
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            flat = lambda *given: self._reference(*tree_unflatten(given, layout))  # noqa: E731
            found = self._known[key] = ask(flat, leaves, if_unknown=if_unknown or ask is draws)
        return found


def are_on_gpu(args: Sequence[Any]) -> bool:
    """Whether some arguments are, or on another device with a generator of its own."""
    return any(isinstance(arg, torch.Tensor) and arg.device.type not in _DEVICES for arg in args)


def _told(argument: Any) -> Hashable:
    """What decides about draws: of a number that may change with each call, whether it is a probability's end."""
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.device.type, argument.shape, argument.stride()
    if type(argument) in (int, float):
        return type(argument), argument == 0, argument == 1
    return type(argument), repr(argument)
