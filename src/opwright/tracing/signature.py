"""What a reference takes: its parameters, read from its annotations.

parameter = Parameter(name, kind, optional, default)      kind: tensor | float | int | bool | str
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from opwright.errors import Place, UnannotatedParameter, UnsupportedParameter, UnsupportedReturn


class Kind(Enum):
    """What a parameter holds; the value is its name in a torch schema."""

    TENSOR = "Tensor"
    FLOAT = "float"
    INT = "int"
    BOOL = "bool"
    STR = "str"


_KINDS = {torch.Tensor: Kind.TENSOR, float: Kind.FLOAT, int: Kind.INT, bool: Kind.BOOL, str: Kind.STR}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a reference."""

    name: str
    kind: Kind
    optional: bool
    default: Any = inspect.Parameter.empty

    @property
    def schema(self) -> str:
        """The parameter as a torch schema spells it."""
        text = f"{self.kind.value}{'?' if self.optional else ''} {self.name}"
        if self.default is inspect.Parameter.empty:
            return text
        return f'{text}="{self.default}"' if isinstance(self.default, str) else f"{text}={self.default}"


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a reference, in order.

    Attributes:
        parameters: Every parameter, positional or keyword.
        outputs: How many tensors it returns when the annotation says so; None when that is seen at the first call.
    """

    parameters: tuple[Parameter, ...]
    outputs: int | None

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Order arguments by parameter and fill in defaults.

        Raises:
            TypeError: For missing, extra or repeated arguments, in Python's words.
        """
        bound = self._inspected.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    @property
    def _inspected(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(p.name, kind, default=p.default) for p in self.parameters])


def place_of(function: Callable[..., Any]) -> Place:
    """The line where a function is defined."""
    code = inspect.unwrap(function).__code__
    return Place(code.co_filename, code.co_firstlineno)


def read_signature(reference: Callable[..., Any]) -> Signature:
    """Read the parameters of `reference` from its annotations.

    Raises:
        UnannotatedParameter: If a parameter has no annotation.
        UnsupportedParameter: If a parameter is variadic, or its annotation is not a tensor or a Python number.
        UnsupportedReturn: If the return annotation is not a tensor or a tuple of tensors.
    """
    inspected = inspect.signature(reference)
    hints = typing.get_type_hints(reference)
    parameters = tuple(_read_parameter(reference, parameter, hints) for parameter in inspected.parameters.values())
    return Signature(parameters, _read_return(reference, hints.get("return")))


def _read_parameter(reference: Callable[..., Any], parameter: inspect.Parameter, hints: dict[str, Any]) -> Parameter:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise UnsupportedParameter(
            f"{reference.__name__} takes a variable number of arguments ('{name}')",
            place=place_of(reference),
            hint="give every tensor a parameter of its own",
        )
    if parameter.kind is parameter.KEYWORD_ONLY:
        raise UnsupportedParameter(
            f"parameter '{name}' of {reference.__name__} can be given by keyword only",
            place=place_of(reference),
            hint="drop the '*' before it; it may still be given by keyword",
        )
    if name not in hints:
        raise UnannotatedParameter(
            f"parameter '{name}' of {reference.__name__} has no annotation",
            place=place_of(reference),
            hint=f"write '{name}: torch.Tensor' (or float, int, bool, str)",
        )
    annotation, optional = _strip_optional(hints[name])
    if annotation not in _KINDS:
        raise UnsupportedParameter(
            f"parameter '{name}' of {reference.__name__} is annotated {hints[name]}",
            place=place_of(reference),
            hint="a parameter is a torch.Tensor, float, int, bool or str, or one of these or None",
        )
    return Parameter(name, _KINDS[annotation], optional, parameter.default)


def _strip_optional(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False
    members = [member for member in typing.get_args(annotation) if member is not type(None)]
    return (members[0], True) if len(members) == 1 else (annotation, False)


def _read_return(reference: Callable[..., Any], annotation: Any) -> int | None:
    if annotation is None:
        return None
    if annotation is torch.Tensor:
        return 1
    members = typing.get_args(annotation)
    if typing.get_origin(annotation) is tuple and members and all(member is torch.Tensor for member in members):
        return len(members)
    raise UnsupportedReturn(
        f"{reference.__name__} is annotated to return {annotation}",
        place=place_of(reference),
        hint="an operator returns a torch.Tensor or a tuple[torch.Tensor, ...] with every member spelled out",
    )
