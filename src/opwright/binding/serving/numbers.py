"""Varying Python numbers: after a second value, kernels take a parameter's number at run time.

A kernel takes it as a 0-d tensor, in float64 or int64, which hold Python's numbers; the trace uses a symbol. If that
fails, because a dimension, a size or a branch needs the value, each value has a kernel of its own. A bool is not a
number here: it is a branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from opwright.binding.tape import Varying
from opwright.binding.variants.kinds import Key, constant_key
from opwright.errors import NumberNeeded
from opwright.tracing.interface.flatten import Leaves
from opwright.tracing.scalars.type_questions import asks_for_types


@dataclass(slots=True)
class _Seen:
    """The floats, or ints, seen so far for a parameter."""

    first: float
    changes: bool = False
    settled: bool = False
    apart: set[float] = field(default_factory=set)


class Numbers:
    """Which parameters of an operator have had different numbers.

    Args:
        reference: The function as written; one that tests the types of its numbers keeps them as constants.

    Attributes:
        version: Another one whenever other numbers are given to kernels.
    """

    def __init__(self, reference: Callable[..., Any]) -> None:
        self.version = 0
        self._reference = reference
        self._asks: bool | None = None
        self._places: dict[type, dict[int, _Seen]] = {float: {}, int: {}}

    def prepare(self, arguments: Sequence[Any], kept: Collection[int] = ()) -> tuple[Sequence[Any], Key]:
        """The arguments with varying numbers as tensors, and a key of the constants.

        Args:
            arguments: Those of a call.
            kept: Positions of numbers that stay constants.
        """
        chosen = [position for position in self._changing(arguments) if position not in kept]
        if not chosen or self._keeps_constants() or not _is_on_cpu(arguments):
            return arguments, constants_of(arguments)
        keys = list(arguments)
        for position in chosen:
            keys[position] = _STAND_INS[type(arguments[position])]
        return given_at_run_time(arguments, chosen), constants_of(keys)

    def varying(self) -> list[Varying]:
        """The numbers that kernels are given, on the processor."""
        if self._asks is not False:
            return []
        return [
            Varying(position, kind, tuple(place.apart))
            for kind, places in self._places.items()
            for position, place in tuple(places.items())
            if place.changes and not place.settled
        ]

    def settle(self, arguments: Sequence[Any], needed: Mapping[int, bool]) -> None:
        """Keep numbers constants if kernels need their values: the current value only, or any.

        Args:
            arguments: Those of a call.
            needed: By position, whether only the current value is needed.
        """
        for position, only_here in needed.items():
            place, value = self._places[type(arguments[position])][position], arguments[position]
            if place.settled or (only_here and value in place.apart):
                continue
            if only_here:
                place.apart.add(value)
            else:
                place.settled = True
            self.version += 1

    def _keeps_constants(self) -> bool:
        if self._asks is None:  # tested late, when the functions that the reference calls are defined
            self._asks = asks_for_types(self._reference)
            self.version += 1
        return self._asks

    def _changing(self, arguments: Sequence[Any]) -> Iterator[int]:
        """Positions of numbers that have changed since the first call and that kernels can take."""
        for position, value in enumerate(arguments):
            places = self._places.get(type(value))
            if places is None:
                continue
            place = places.get(position)
            if place is None:
                places[position] = _Seen(value)
                continue
            if not place.changes:
                place.changes = value != place.first and not math.isnan(value)
                self.version += place.changes
            if place.changes and not place.settled and value not in place.apart and can_be_given(value):
                yield position


# The range of float32: beyond it, torch raises in places; infinities and NaN cannot be symbols.
_MOST = 3e38
_LEAST_INTEGER, _INTEGERS = -(2**63), 2**64
_DTYPES = {float: torch.float64, int: torch.int64}


def can_be_given(value: Any) -> bool:
    """Whether a kernel can take this number at run time."""
    if type(value) is int:
        return 0 <= value - _LEAST_INTEGER < _INTEGERS
    return type(value) is float and abs(value) < _MOST


def given_at_run_time(arguments: Sequence[Any], positions: Sequence[int]) -> Leaves:
    """The arguments, with the numbers at some positions as tensors."""
    prepared = list(arguments)
    for position in positions:
        prepared[position] = torch.scalar_tensor(arguments[position], dtype=_DTYPES[type(arguments[position])])
    leaves = Leaves(prepared)
    leaves.given = arguments.given if isinstance(arguments, Leaves) else tuple(arguments)
    leaves.numbers = tuple(positions)
    return leaves


def _is_on_cpu(arguments: Sequence[Any]) -> bool:
    """Whether no tensor is on a GPU: reading a number from its memory would wait."""
    return all(a.device.type == "cpu" for a in arguments if isinstance(a, torch.Tensor))


class _StandIn:
    """A placeholder in keys for a number that is given at run time."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


_STAND_INS = {float: _StandIn("number"), int: _StandIn("integer")}


def constants_of(arguments: Sequence[Any]) -> Key:
    """The key of a call's constants."""
    return tuple([constant_key(a) for a in arguments if not isinstance(a, torch.Tensor)])


def numbers_in(arguments: Sequence[Any]) -> tuple[int, ...]:
    """Positions of the tensors that stand for Python numbers."""
    return arguments.numbers if isinstance(arguments, Leaves) else ()


def as_called(arguments: Sequence[Any]) -> list[Any]:
    """The arguments with Python numbers in place of the tensors that stand for them."""
    numbers = numbers_in(arguments)
    return [value.item() if position in numbers else value for position, value in enumerate(arguments)]


def needed_in(arguments: Sequence[Any], refusal: Exception, names: Sequence[str]) -> dict[int, bool]:
    """Which run-time numbers must become constants, and whether for the current values only.

    These are the numbers that a refusal names. If it names none, they are the integers, which are more often sizes and
    dimensions than floats; else all.
    """
    numbers = numbers_in(arguments)
    if isinstance(refusal, NumberNeeded):
        named = {position: refusal.only_here for position in numbers if names[position] in refusal.names}
        if named:
            return named
    integers = [position for position in numbers if arguments[position].dtype is torch.int64]
    return dict.fromkeys(integers or numbers, False)
