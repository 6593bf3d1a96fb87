"""What a reference takes: its parameters, read from its annotations.

parameter = Parameter(name, kind, optional, default, keyword_only, type, variadic)
kind      = tensor | constant | structure           a structure has tensors or constants in it, or is one of them

A parameter without a usable annotation is a structure: each call shows what it holds.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch

from opwright.codegen.cpp.program import MOST_ARGUMENTS
from opwright.errors import UnsupportedParameter, UnsupportedReturn
from opwright.introspection import signature_of
from opwright.ir.names.schema_words import schema_words
from opwright.tracing.interface.annotations import SCALARS, is_named_tuple, is_supported, read_annotations, schema_type
from opwright.tracing.interface.place import place_of as place_of


class Kind(Enum):
    """What a parameter holds."""

    TENSOR = "tensor"
    CONSTANT = "constant"
    STRUCTURE = "structure"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a reference.

    Attributes:
        name: Its name.
        kind: What it holds.
        optional: Whether it may be None.
        default: Its default; `inspect.Parameter.empty` if it has none.
        keyword_only: Whether it can be given by keyword only.
        type: Its type in a torch schema; None if there is none.
        variadic: Whether it collects the arguments that are left: `*args`, or `**kwargs` if they are given by keyword.
        members: Names for the first of the arguments that it collects.
    """

    name: str
    kind: Kind
    optional: bool
    default: Any = inspect.Parameter.empty
    keyword_only: bool = False
    type: str | None = "Tensor"
    variadic: bool = False
    members: tuple[str, ...] = ()

    @property
    def inspected(self) -> inspect.Parameter:
        """The parameter as an `inspect.Parameter`."""
        kinds = {
            (False, False): inspect.Parameter.POSITIONAL_OR_KEYWORD,
            (True, False): inspect.Parameter.KEYWORD_ONLY,
            (False, True): inspect.Parameter.VAR_POSITIONAL,
            (True, True): inspect.Parameter.VAR_KEYWORD,
        }
        return inspect.Parameter(self.name, kinds[self.keyword_only, self.variadic], default=self.default)

    @property
    def schema(self) -> str | None:
        """The parameter as a torch schema spells it; None if none can, because of its type or its name."""
        if self.type is None or not self.name.isascii() or self.name in schema_words():
            return None
        text = f"{self.type} {self.name}"
        match self.default:
            case inspect.Parameter.empty:
                return text
            case str():
                return f'{text}="{self.default}"'
            case None | bool() | int() | float():
                return f"{text}={self.default}"
            case list() | tuple() if "Tensor" not in self.type:
                return f"{text}={list(self.default)}"
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a reference, in order.

    Attributes:
        parameters: Every parameter, positional or keyword.
        outputs: How many tensors it returns when the annotation says so; None if only the first call shows it.
        structured: Whether the annotation says that it returns another structure than a tuple.
        name: What messages call the function; "" if it has no name that a user would know.
    """

    parameters: tuple[Parameter, ...]
    outputs: int | None
    structured: bool = False
    name: str = field(default="", compare=False)
    _inspected: inspect.Signature = field(init=False, repr=False, compare=False)
    _takes_all_by_position: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_position = not any(parameter.keyword_only or parameter.variadic for parameter in self.parameters)
        inspected = inspect.Signature([parameter.inspected for parameter in self.parameters])
        object.__setattr__(self, "_inspected", inspected)
        object.__setattr__(self, "_takes_all_by_position", by_position)

    @property
    def is_flat(self) -> bool:
        """Whether every parameter is a tensor or a constant."""
        return all(parameter.kind is not Kind.STRUCTURE for parameter in self.parameters)

    @property
    def schema(self) -> str | None:
        """The parameters as a torch schema spells them; None if it cannot spell one of them, the result, or so many."""
        if len(self.parameters) > MOST_ARGUMENTS:
            return None
        texts = [(parameter.keyword_only, parameter.schema) for parameter in self.parameters]
        if self.structured or any(text is None for _, text in texts):
            return None
        positional = [str(text) for by_keyword, text in texts if not by_keyword]
        by_keyword = [str(text) for by_keyword, text in texts if by_keyword]
        return ", ".join([*positional, "*", *by_keyword] if by_keyword else positional)

    def positional(self, reference: Callable[..., Any]) -> Callable[..., Any]:
        """The reference as a function that takes every argument by position."""
        if self._takes_all_by_position:
            return reference

        @functools.wraps(reference)
        def called(*arguments: Any) -> Any:
            positional, by_keyword = self.split(arguments)
            return reference(*positional, **by_keyword)

        return called

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Order arguments by parameter and fill in defaults.

        Raises:
            TypeError: For missing, extra or repeated arguments, in Python's words after the name of the function.
        """
        if self._takes_all_by_position and not kwargs and len(args) == len(self.parameters):
            return args
        try:
            bound = self._inspected.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}" if self.name else str(error)) from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """The inverse of `bind`: arguments to give by position, and by keyword."""
        positional: list[Any] = []
        by_keyword: dict[str, Any] = {}
        for parameter, argument in zip(self.parameters, arguments, strict=True):
            match parameter.keyword_only, parameter.variadic:
                case False, False:
                    positional.append(argument)
                case False, True:
                    positional += argument
                case True, False:
                    by_keyword[parameter.name] = argument
                case _:
                    by_keyword |= argument
        return positional, by_keyword


def mutated_positions(reference: Callable[..., Any], signature: Signature, names: Sequence[str]) -> tuple[int, ...]:
    """Positions of the parameters that a reference changes.

    Raises:
        UnsupportedParameter: If one is a parameter of another kind than tensors and containers of them.
    """
    may_change = [
        p.name if p.kind is not Kind.CONSTANT and not (p.kind is Kind.TENSOR and p.optional) else ""
        for p in signature.parameters
    ]
    for name in names:
        if name not in may_change:
            raise UnsupportedParameter(
                f"mutates= names '{name}', which is not a parameter of {reference.__name__} that holds tensors",
                place=place_of(reference),
                hint="name parameters annotated torch.Tensor, or lists, tuples and dicts of these",
            )
    return tuple(may_change.index(name) for name in names)


def tensor_positions(reference: Callable[..., Any], signature: Signature, names: Sequence[str]) -> tuple[int, ...]:
    """Positions of the named tensor parameters; if none is named, of all that are not optional.

    Raises:
        UnsupportedParameter: If a name is not a tensor parameter.
    """
    tensors = {p.name: position for position, p in enumerate(signature.parameters) if p.kind is Kind.TENSOR}
    for name in names:
        if name not in tensors:
            raise UnsupportedParameter(
                f"'{name}' is not a tensor parameter of {reference.__name__}",
                place=place_of(reference),
                hint=f"its tensors are {', '.join(tensors)}" if tensors else "annotate its tensors torch.Tensor",
            )
    every = [p.name for p in signature.parameters if p.name in tensors and not p.optional]
    return tuple(tensors[name] for name in (names or every))


def declared_outputs(reference: Callable[..., Any], signature: Signature) -> int:
    """How many tensors the return annotation promises.

    Raises:
        UnsupportedReturn: If it does not say.
    """
    if signature.outputs is None:
        raise UnsupportedReturn(
            f"the return annotation of {reference.__name__} does not tell how many tensors there are",
            place=place_of(reference),
            hint="annotate torch.Tensor, or a tuple of them",
        )
    return signature.outputs


def check_outputs(reference: Callable[..., Any], signature: Signature, outputs: int) -> None:
    """Compare how many tensors are returned with the annotation.

    Raises:
        UnsupportedReturn: If it promises another number.
    """
    if signature.outputs not in (None, outputs):
        raise UnsupportedReturn(
            f"{reference.__name__} is annotated to return {signature.outputs} tensors and returns {outputs}",
            place=place_of(reference),
            hint="correct the annotation",
        )


def read_signature(reference: Callable[..., Any], mutates: Sequence[str] = ()) -> Signature:
    """Read the parameters of `reference` from its annotations.

    Args:
        reference: A function.
        mutates: Names of the tensors that it changes.

    Raises:
        UnsupportedReturn: If there is certainly no tensor in what the return annotation promises.
    """
    inspected = signature_of(reference)
    hints = read_annotations(reference)
    parameters = tuple(_read_parameter(parameter, hints, mutates) for parameter in inspected.parameters.values())
    outputs = _read_return(reference, hints.get("return"))
    structured, name = "return" in hints and outputs is None, getattr(reference, "__name__", "")
    return Signature(parameters, outputs, structured, name)


def _read_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any], mutates: Sequence[str]) -> Parameter:
    name, annotation = parameter.name, hints.get(parameter.name, Any)
    by_keyword = parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return Parameter(name, Kind.STRUCTURE, False, keyword_only=by_keyword, type=None, variadic=True)
    if not is_supported(annotation):
        shown = Kind.STRUCTURE if not mutates else Kind.TENSOR if name in mutates else Kind.CONSTANT
        return Parameter(name, shown, False, parameter.default, by_keyword, None)
    bare, optional = _strip_optional(annotation)
    kind = Kind.STRUCTURE if bare not in SCALARS else Kind.TENSOR if bare is torch.Tensor else Kind.CONSTANT
    return Parameter(name, kind, optional, parameter.default, by_keyword, schema_type(annotation))


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
    if annotation is type(None) or not is_supported(annotation):
        return None
    if "Tensor" not in repr(annotation) + str(_fields(annotation)):
        raise UnsupportedReturn(
            f"{reference.__name__} is annotated to return {annotation}",
            place=place_of(reference),
            hint="an operator returns a torch.Tensor, or a tuple, list, dict or NamedTuple with tensors in it",
        )
    return None


def _fields(annotation: Any) -> Any:
    return typing.get_type_hints(annotation) if is_named_tuple(annotation) else ""
