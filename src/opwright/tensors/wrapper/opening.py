"""Taking wrappers out of the arguments of an operation, and putting its results into wrappers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import torch
from torch.utils._pytree import tree_is_leaf, tree_leaves, tree_structure, tree_unflatten

from opwright.binding.serving.inside import RunsInside
from opwright.errors import WrapperRefused
from opwright.tensors.wrapper.names import Names


class Held(RunsInside):
    """What the rules know of wrappers."""

    __slots__ = ()
    names: ClassVar[Names]

    def densify(self) -> torch.Tensor:
        """A plain tensor of the same values."""
        raise NotImplementedError

    @classmethod
    def made(cls, data: Sequence[torch.Tensor], metadata: Any) -> Any:
        """A wrapper around tensors."""
        raise NotImplementedError

    @classmethod
    def metadata_of(cls, wrappers: Sequence[Held]) -> Any:
        """The metadata of what is made of wrappers."""
        raise NotImplementedError


class Operation(Protocol):
    """An operation of torch, or an operator."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""


Args = Sequence[Any]
Kwargs = Mapping[str, Any]


def opened(args: Args, kwargs: Kwargs, place: int, met: list[Held]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with the tensor at a place of each wrapper instead of it; `met` gets the wrappers, in order."""
    inner = _each(args, place, met)
    if not kwargs:
        return inner, {}
    return inner, dict(zip(kwargs, _each(kwargs.values(), place, met), strict=True))


def _each(values: Iterable[Any], place: int, met: list[Held]) -> list[Any]:
    found = []
    for value in values:
        if isinstance(value, Held):
            met.append(value)
            found.append(getattr(value, value.names.data[place]))
        elif type(value) is list or type(value) is tuple:
            found.append(type(value)(_each(value, place, met)))
        else:
            found.append(value)
    return found


def dense(args: Args, kwargs: Kwargs) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with a plain tensor instead of each wrapper."""
    return [_dense(value) for value in args], {name: _dense(value) for name, value in kwargs.items()}


def _dense(value: Any) -> Any:
    if isinstance(value, Held):
        return value.densify()
    if type(value) is list or type(value) is tuple:
        return type(value)(_dense(member) for member in value)
    return value


def wrapped(kind: type[Held], results: Sequence[Any], metadata: Callable[[], Any]) -> Any:
    """Wrap results that belong together, one for each tensor of a wrapper.

    Raises:
        WrapperRefused: If they are no tensors and differ.
    """
    first = results[0]
    if isinstance(first, torch.Tensor):
        return kind.made(results, metadata())
    if type(first) is tuple or type(first) is list:
        return type(first)(wrapped(kind, members, metadata) for members in zip(*results, strict=True))
    if not tree_is_leaf(first):  # what an operator returns may be a dict or a named tuple
        leaves = [tree_leaves(result) for result in results]
        members = [wrapped(kind, alike, metadata) for alike in zip(*leaves, strict=True)]
        return tree_unflatten(members, tree_structure(first))
    if any(type(other) is not type(first) or other != first for other in results[1:]):
        raise WrapperRefused(
            f"the tensors of {kind.__name__} give different answers: {first!r} and {results[1]!r}",
            hint="give the operation a rule of its own",
        )
    return first
