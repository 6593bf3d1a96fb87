"""What a wrapper's class line says: the names of its tensors and of its metadata."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import torch

from opwright.errors import WrapperRefused

MISSING: Any = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a wrapper's attributes.

    Attributes:
        data: Of its tensors.
        meta: Of its metadata.
        shown: Position of the tensor whose dtype the wrapper shows.
        held: All of them.
    """

    data: tuple[str, ...]
    meta: tuple[str, ...]
    shown: int = 0
    held: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", (*self.data, *self.meta))

    def reader(self, metadata: type[tuple[Any, ...]]) -> Callable[[Sequence[Any]], list[Any]]:
        """What reads the metadata of wrappers into named tuples of this type; made once, for it runs in every call.

        It raises `AttributeError` if a wrapper has none of a name.
        """
        make = tuple.__new__
        if not self.meta:
            return lambda wrappers: [make(metadata) for _ in wrappers]
        if len(self.meta) == 1:
            (name,) = self.meta
            return lambda wrappers: [make(metadata, (getattr(wrapper, name),)) for wrapper in wrappers]
        read = attrgetter(*self.meta)
        return lambda wrappers: [make(metadata, read(wrapper)) for wrapper in wrappers]

    def signature(self, kind: type) -> inspect.Signature:
        """The parameters of the constructor; attributes of the class are the defaults of metadata."""
        either = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, either) for name in self.data]
        for name in self.meta:
            default = getattr(kind, name, MISSING)
            follows = any(parameter.default is not MISSING for parameter in parameters)
            by = inspect.Parameter.KEYWORD_ONLY if default is MISSING and follows else either
            by = inspect.Parameter.KEYWORD_ONLY if parameters[-1].kind is not either else by
            parameters.append(inspect.Parameter(name, by, default=default))
        return inspect.Signature(parameters)


def names_of(kind: type) -> Names | None:
    """What a class of wrappers holds; None before it is read. Tensors of PyTorch 2.11 have other `names`."""
    names = getattr(kind, "names", None)
    return names if isinstance(names, Names) else None


def read_names(kind: str, data: Sequence[str], meta: Sequence[str], dtype: str | None) -> Names:
    """Check the names of a class line.

    Raises:
        WrapperRefused: If there is no name of a tensor, or if one is no identifier, is said twice or hides an attribute
            of tensors.
    """
    if any(isinstance(names, str) or not isinstance(names, Iterable) for names in (data, meta)):
        raise WrapperRefused(f"data= and meta= of {kind} are tuples of names", hint='write data=("elem",)')
    if not data:
        raise WrapperRefused(f"{kind} names no tensor that it holds", hint='say it in the class line: data=("elem",)')
    names = [*data, *meta]
    for name in names:
        if not (isinstance(name, str) and name.isidentifier()) or names.count(name) > 1:
            raise WrapperRefused(f"{name!r} is no name for what {kind} holds", hint="each is an identifier of its own")
        if hasattr(torch.Tensor, name):
            raise WrapperRefused(f"{kind} would hide torch.Tensor.{name}", hint=f"choose another name than {name!r}")
    if dtype is not None and dtype not in data:
        raise WrapperRefused(f"dtype={dtype!r} is none of the tensors of {kind}", hint=f"name one of {tuple(data)}")
    return Names(tuple(data), tuple(meta), data.index(dtype) if dtype is not None else 0)
