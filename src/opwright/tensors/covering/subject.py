"""Subject: the type that is tried, its sample, and what is known of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map

from opwright.errors import HandlerRefused

METHODS = ("densify", "full_tensor", "dequantize")
"""What types call the method that returns the tensor they stand for: ours, DTensor, torchao."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A type, one object of it, and how to see what it stands for.

    Attributes:
        type: The type.
        sample: The object.
        to_dense: Makes a plain tensor of an object.
        metadata: Attributes that results must have, with the sample's value.
    """

    type: type
    sample: Any
    to_dense: Callable[[Any], torch.Tensor]
    metadata: tuple[str, ...]

    def dense(self, value: Any) -> Any:
        """A result with plain tensors in place of the objects of the type."""
        return tree_map(self._dense, value)

    def _dense(self, value: Any) -> Any:
        if not isinstance(value, self.type):
            return value.detach() if isinstance(value, torch.Tensor) else value
        return self.to_dense(value).detach()

    def fresh(self) -> Any:
        """A copy of the sample that a function may change.

        Raises:
            TypeError: The type has no copies.
        """
        try:
            other = copy.deepcopy(self.sample)
            if self._is_twin(other):
                return other
        except Exception:  # the type's own code, or PyTorch's word that it has none
            pass
        other = self.sample.detach().clone() if isinstance(self.sample, torch.Tensor) else None
        if not isinstance(other, self.type):
            raise TypeError(f"{self.type.__name__} cannot be copied")
        for name in self.metadata:
            setattr(other, name, getattr(self.sample, name))
        return other

    def _is_twin(self, other: Any) -> bool:
        return isinstance(other, self.type) and torch.equal(self._dense(other), self._dense(self.sample))


def subject_of(
    type_: type, sample: Any, dense: Callable[[Any], torch.Tensor] | None, metadata: Sequence[str] | None
) -> Subject:
    """Find out how to see what an object stands for.

    Raises:
        HandlerRefused: The sample is not of the type, has no such metadata, or nothing makes a tensor of it.
    """
    if not isinstance(sample, type_):
        raise HandlerRefused(
            f"a sample is a {type(sample).__name__}, not a {type_.__name__}", hint="give objects of the type"
        )
    names = getattr(type_, "names", None)  # of a Wrapper
    if metadata is None:
        metadata = getattr(names, "meta", ())
    metadata = (metadata,) if isinstance(metadata, str) else tuple(metadata)
    for name in metadata:
        if not hasattr(sample, name):
            raise HandlerRefused(f"a sample of {type_.__name__} has no {name}", hint="name attributes in metadata=")
    found = dense or _dense_of(type_, getattr(names, "data", ()))
    _try(found, sample)
    return Subject(type_, sample, found, metadata)


def _try(dense: Callable[[Any], torch.Tensor], sample: Any) -> None:
    hint = "give dense=, a function that takes an object and returns a torch.Tensor"
    try:
        made = dense(sample)
    except Exception as error:  # the type's own code
        said = f"{type(error).__name__}: {error}"
        raise HandlerRefused(f"a {type(sample).__name__} cannot be made dense: {said}", hint=hint) from error
    if not isinstance(made, torch.Tensor):
        name = type(made).__name__
        raise HandlerRefused(f"what stands for a {type(sample).__name__} is a {name}, not a tensor", hint=hint)


def _dense_of(type_: type, data: Sequence[str]) -> Callable[[Any], torch.Tensor]:
    for name in METHODS:
        if name in vars(type_) or (name in dir(type_) and not issubclass(type_, torch.Tensor)):
            return lambda value: getattr(value, name)()
    if len(data) == 1:
        return lambda value: getattr(value, data[0])
    if issubclass(type_, torch.Tensor) and not is_dispatched(type_):
        return lambda value: value.as_subclass(torch.Tensor)
    raise HandlerRefused(
        f"nothing is known that makes a tensor of a {type_.__name__}",
        hint="give dense=, a function that takes an object and returns a torch.Tensor",
    )


def is_dispatched(type_: type) -> bool:
    """Whether it is a Tensor whose operations are dispatched to the type itself; its memory may be another's."""
    plain: Any = torch.Tensor
    return (
        issubclass(type_, torch.Tensor) and getattr(type_, "__torch_dispatch__", None) is not plain.__torch_dispatch__
    )
