"""Sizes and dtypes of the reference's results, computed on fake tensors and cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.binding.variants.kinds import Key, constant_key
from opwright.errors import NoKernel, Place, WrongResult
from opwright.tracing.interface.orders import Order, order_of, orders_of
from opwright.tracing.torch_hooks.layouts.memory_formats import MemoryFormats

_MOST_REMEMBERED = 4096
Described = tuple[tuple[int, ...], torch.dtype]
"""The sizes and the dtype of a tensor."""


class ReferenceRefuses(Exception):
    """The reference raises for these arguments; calling it raises its own error."""


@dataclass(frozen=True, slots=True)
class Tensors:
    """What the reference returns.

    Attributes:
        described: The sizes and the dtype of each tensor.
        orders: In which order its dimensions lie in memory.
        bare: Whether it is a single tensor, not a tuple.
        count: How many elements the first has.
    """

    described: tuple[Described, ...]
    orders: tuple[Order, ...]
    bare: bool
    count: int


class Expected:
    """Finds what the reference returns by running it on fake tensors, once for each kind of arguments.

    Args:
        reference: The function as written, taking every argument by position.
    """

    def __init__(self, reference: Callable[..., Any]) -> None:
        self._reference = reference
        self._known: dict[Key, Tensors] = {}

    def __call__(self, args: Sequence[Any]) -> Tensors:
        """Sizes and dtypes of the results.

        Raises:
            ReferenceRefuses: If the reference raises.
            NoKernel: If it returns anything but a tensor or a tuple of tensors.
        """
        of_each = [(a.shape, a.dtype) if isinstance(a, torch.Tensor) else constant_key(a) for a in args]
        key: Key = (*of_each, orders_of(args), torch.get_default_dtype())
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            found = self._known[key] = described(self.fake(self._reference, args))
        return found

    def fake(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Run a function on fake tensors like the arguments.

        Raises:
            ReferenceRefuses: If it raises.
        """
        from opwright.tracing.torch_hooks.fake_mode import (  # imports sympy (0.3 s)
            LeanFakeTensorMode,
            with_more_formulas_if_needed,
        )

        def run() -> Any:
            with torch.no_grad(), LeanFakeTensorMode(), MemoryFormats():
                return function(*[_like(arg) if isinstance(arg, torch.Tensor) else arg for arg in args])

        try:
            return with_more_formulas_if_needed(run)
        except Exception as error:
            raise ReferenceRefuses from error


def described(returned: Any) -> Tensors:
    """Sizes and dtypes of tensors, alone or in a tuple.

    Raises:
        NoKernel: If the value is anything else.
    """
    members = (returned,) if isinstance(returned, torch.Tensor) else returned
    if type(members) is not tuple or not members or not all(isinstance(member, torch.Tensor) for member in members):
        raise NoKernel(
            "a handwritten rung returns a tensor or a tuple of tensors, but the reference returns something else",
            hint="let the reference return a tensor or a tuple of tensors",
        )
    every = tuple((tuple(member.shape), member.dtype) for member in members)
    orders = tuple(order_of(torch.empty_like(member, device="meta")) for member in members)
    return Tensors(every, orders, isinstance(returned, torch.Tensor), members[0].numel())


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def check_made(name: str, place: Place, made: Any, expected: Sequence[Described]) -> None:
    """Compare the results of a handwritten function with those that the reference returns.

    Raises:
        WrongResult: If the number of tensors, a size or a dtype differs.
    """
    if not isinstance(made, (tuple, list)) or not all(isinstance(member, torch.Tensor) for member in made):
        raise WrongResult(
            f"{name} returned a {type(made).__name__}; a tensor or a tuple of tensors was expected", place=place
        )
    if len(made) != len(expected):
        raise WrongResult(f"{name} returned {len(made)} tensors; {len(expected)} were expected", place=place)
    for position, (tensor, (sizes, dtype)) in enumerate(zip(made, expected, strict=True)):
        if tuple(tensor.shape) != sizes or tensor.dtype != dtype:
            raise WrongResult(
                f"{name} returned {_spelled(tuple(tensor.shape), tensor.dtype)} as result {position}, but the "
                f"reference returns {_spelled(sizes, dtype)}",
                place=place,
            )


def _spelled(sizes: tuple[int, ...], dtype: torch.dtype) -> str:
    return f"{str(dtype).removeprefix('torch.')}{list(sizes)}"
