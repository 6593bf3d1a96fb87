"""One call as text, which is written without calling anything that is overridden."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import resolve_name

_LONGEST = 60  # characters of a value that is no tensor


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function; it keeps no tensors alive.

    Attributes:
        name: "torch.add", "torch.Tensor.mul_", or the name of an operator.
        arguments: The arguments in short, such as "Tensor[3, 4] float32".
        by_name: Those that were given by name.
    """

    name: str
    arguments: tuple[str, ...]
    by_name: Mapping[str, str]

    def __str__(self) -> str:
        given = [*self.arguments, *(f"{name}={value}" for name, value in self.by_name.items())]
        return f"{self.name}({', '.join(given)})"


def call_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    """Describe a call."""
    with torch._C.DisableTorchFunction():
        by_name = {key: in_short(value) for key, value in kwargs.items()}
        return Call(name, tuple(in_short(value) for value in args), by_name)


def name_of(function: Callable[..., Any]) -> str:
    """The name of an overridable function, with its module or class."""
    return str(resolve_name(function) or getattr(function, "__qualname__", function))


def in_short(value: Any) -> str:
    """A value on one line: tensors by type, shape and dtype."""
    if isinstance(value, torch.Tensor):
        return f"{type(value).__name__}{list(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    if hasattr(type(value), "__torch_function__"):
        return type(value).__name__
    if type(value) in (list, tuple):
        members = ", ".join(map(in_short, value))
        return f"[{members}]" if type(value) is list else f"({members}{',' if len(value) == 1 else ''})"
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {in_short(member)}" for key, member in value.items()) + "}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
