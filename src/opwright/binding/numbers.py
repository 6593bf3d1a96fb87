"""Python floats that change from call to call: after a second value a parameter's number is given at run time.

A kernel takes it as a tensor without dimensions in float64, which is what a Python float is; the trace computes with a
symbol. Where that fails, a library operation or a branch wants the value, each value has a kernel of its own again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.binding.kinds import Key, constant_key
from opwright.tracing.flatten import Leaves
from opwright.tracing.type_questions import asks_for_types


class Numbers:
    """Which parameters of an operator have been given different floats.

    Args:
        reference: The function as written; one that asks for the types of its numbers keeps them as constants.
    """

    def __init__(self, reference: Callable[..., Any]) -> None:
        self._reference = reference
        self._asks: bool | None = None
        self._first: dict[int, float] = {}
        self._changing: set[int] = set()
        self._settled: set[int] = set()

    def prepare(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Key]:
        """The arguments with their changing numbers as tensors, and what tells the constants apart."""
        self._look(arguments)
        if any(isinstance(a, torch.Tensor) and a.device.type != "cpu" for a in arguments):
            return arguments, constants_of(arguments)  # a number in a GPU's memory would be waited for
        if self._changing and self._keeps_constants():
            return arguments, constants_of(arguments)
        chosen = [p for p in self._changing if type(arguments[p]) is float and abs(arguments[p]) < _MOST]
        if not chosen:
            return arguments, constants_of(arguments)
        prepared = list(arguments)
        keys = list(arguments)
        for position in chosen:
            prepared[position] = torch.scalar_tensor(arguments[position], dtype=torch.float64)
            keys[position] = NUMBER
        leaves = Leaves(prepared)
        leaves.given = arguments.given if isinstance(arguments, Leaves) else tuple(arguments)
        leaves.numbers = tuple(sorted(chosen))
        return leaves, constants_of(keys)

    def settle(self, positions: Sequence[int]) -> None:
        """Keep them constants: kernels need their values."""
        self._settled.update(positions)
        self._changing.difference_update(positions)

    def _keeps_constants(self) -> bool:
        if self._asks is None:  # asked late, when what the reference calls has been defined too
            self._asks = asks_for_types(self._reference)
        return self._asks

    def _look(self, arguments: Sequence[Any]) -> None:
        for position, value in enumerate(arguments):
            if type(value) is not float or position in self._settled or position in self._changing:
                continue
            if self._first.setdefault(position, value) != value and not math.isnan(value):
                self._changing.add(position)


# What float32 holds: torch raises for more in places, and infinities and NaN are not symbols to compute with.
_MOST = 3e38


class _Number:
    """Stands in keys for a number that is given at run time."""

    def __repr__(self) -> str:
        return "number"


NUMBER = _Number()


def constants_of(arguments: Sequence[Any]) -> Key:
    """What tells the constants of two calls apart."""
    return tuple([constant_key(a) for a in arguments if not isinstance(a, torch.Tensor)])


def numbers_in(arguments: Sequence[Any]) -> tuple[int, ...]:
    """Positions of the tensors that stand for Python floats."""
    return arguments.numbers if isinstance(arguments, Leaves) else ()
