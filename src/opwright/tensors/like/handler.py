"""Handler: a function that a type has in place of one of PyTorch's, checked against the overloads of that one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from opwright.errors import HandlerRefused, Place
from opwright.introspection import signature_of
from opwright.tensors.spellings.overloads import MISSING, Overload, Parameter, overloads
from opwright.tensors.spellings.table import Function, Spelling

DEPRECATED = frozenset({"_stacklevel", "unbiased", "inplace", "size_average", "reduce"})
"""Parameters that a handler need not have. A call that gives another value than the default is not for the handler."""


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """A handler, and what of the arguments of its function it takes.

    Attributes:
        call: The function of the type's author.
        owner: The class that it was registered with; it serves calls with this class, its subclasses and tensors.
        origin: The spelling that it was registered for.
        positional: The names of its parameters that may be given by position.
        keywords: All names that it may be given.
        has_rest: Whether it has `*args`.
        has_names: Whether it has `**kwargs`.
        lacks: The arguments of its function that it does not take.
        needed: The names of its parameters without a default.
    """

    call: Callable[..., Any]
    owner: type
    origin: Spelling
    positional: tuple[str, ...]
    keywords: frozenset[str]
    has_rest: bool
    has_names: bool
    lacks: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it takes all arguments of its function."""
        return not self.lacks

    def name_at(self, overload: Overload, position: int) -> str | None:
        """What it calls a positional parameter of its function, if it takes it by position."""
        if position >= len(self.positional):
            return None
        own, theirs = self.positional[position], overload.positional[position].name
        if own == theirs:
            return own
        is_another = any(own == each.name for other in overloads(self.origin.function) for each in other.parameters)
        return None if is_another or is_ambiguous(self.origin.function, position) else own

    def takes(self, overload: Overload, parameter: Parameter) -> bool:
        """Whether it takes a parameter of its function."""
        if parameter.name in self.keywords or self.has_names:
            return True
        if parameter.is_keyword:
            return False
        return self.has_rest or self.name_at(overload, overload.positional.index(parameter)) is not None


def is_ambiguous(function: Function, position: int) -> bool:
    """Whether overloads have different parameters at a position: `torch.max(x, dim)`, `torch.max(x, other)`."""
    if position == 0:
        return False
    names = {each.positional[position].name for each in overloads(function) if position < len(each.positional)}
    return len(names) > 1


def handler_of(call: Callable[..., Any], owner: type, origin: Spelling, *, partial: bool) -> Handler:
    """Check a handler against the overloads of its function.

    Raises:
        HandlerRefused: It is no function, lacks a parameter (and is not `partial`), needs one that the function does
            not have, or has another default.
    """
    if not callable(call):
        raise HandlerRefused(
            f"the handler of {owner.__name__} for {origin.name} is no function: {call!r}", hint="give a function"
        )
    place = _place(call)
    if origin.is_attribute:
        return Handler(call, owner, origin, ("self",), frozenset({"self"}), False, False)
    try:
        signature = signature_of(call, follow_wrapped=False)
    except (TypeError, ValueError):
        return Handler(call, owner, origin, (), frozenset(), True, True)  # a builtin, which checks itself
    handler = _read(call, owner, origin, signature)
    missing = dict.fromkeys(_missing(handler))
    _refuse_surplus(handler, signature, place)
    _refuse_other_defaults(handler, signature, place)
    if missing and not partial:
        names = ", ".join(missing)
        raise HandlerRefused(
            f"the handler of {owner.__name__} for {origin.name} does not take {names}, which {origin.name} takes",
            place=place,
            hint="add it, or say implements(..., partial=True): calls that give it then go to the fallback",
        )
    return replace(handler, lacks=tuple(missing))


def _read(call: Callable[..., Any], owner: type, origin: Spelling, signature: inspect.Signature) -> Handler:
    kinds = [(name, each.kind) for name, each in signature.parameters.items()]
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return Handler(
        call,
        owner,
        origin,
        positional=tuple(name for name, kind in kinds if kind in by_position),
        keywords=frozenset(name for name, kind in kinds if kind in by_name),
        has_rest=any(kind is inspect.Parameter.VAR_POSITIONAL for _, kind in kinds),
        has_names=any(kind is inspect.Parameter.VAR_KEYWORD for _, kind in kinds),
        needed=tuple(name for name, kind in kinds if kind in {*by_position, *by_name} and _is_needed(signature, name)),
    )


def _is_needed(signature: inspect.Signature, name: str) -> bool:
    return signature.parameters[name].default is MISSING


def _missing(handler: Handler) -> Iterator[str]:
    for overload in overloads(handler.origin.function):
        for parameter in overload.parameters:
            if parameter.name not in DEPRECATED and not handler.takes(overload, parameter):
                yield parameter.name


def _refuse_surplus(handler: Handler, signature: inspect.Signature, place: Place | None) -> None:
    known = overloads(handler.origin.function)
    if not known:
        return
    most = max(len(overload.positional) for overload in known)
    names = {parameter.name for overload in known for parameter in overload.parameters}
    for position, (name, each) in enumerate(signature.parameters.items()):
        is_needed = each.default is MISSING and each.kind not in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        )
        by_position = name in handler.positional and position < most
        if is_needed and not by_position and name not in names:
            raise HandlerRefused(
                f"the handler of {handler.owner.__name__} for {handler.origin.name} needs {name}, "
                f"which {handler.origin.name} does not have",
                place=place,
                hint=f"give {name} a default, or leave it out",
            )


def _refuse_other_defaults(handler: Handler, signature: inspect.Signature, place: Place | None) -> None:
    defaults = {
        parameter.name: parameter.default
        for overload in overloads(handler.origin.function)
        for parameter in overload.parameters
        if isinstance(parameter.default, (bool, int, float, str))
    }
    for name, each in signature.parameters.items():
        if name not in defaults or not isinstance(each.default, (bool, int, float, str)):
            continue
        if each.default != defaults[name] and name not in DEPRECATED:
            raise HandlerRefused(
                f"the handler of {handler.owner.__name__} for {handler.origin.name} has {name}={each.default!r}, "
                f"where {handler.origin.name} has {name}={defaults[name]!r}",
                place=place,
                hint="take the default of the function: calls that leave it out mean that",
            )


def _place(call: Callable[..., Any]) -> Place | None:
    code = getattr(call, "__code__", None)
    return Place(code.co_filename, code.co_firstlineno) if code is not None else None


def is_tensor_like(value: Any) -> bool:
    """Whether PyTorch would ask the type of a value, or take it for a tensor."""
    return isinstance(value, torch.Tensor) or hasattr(type(value), "__torch_function__")


def overrides(type_: type) -> bool:
    """Whether PyTorch asks a type about functions; torch.Tensor and those that switch it off are asked about none."""
    own = getattr(type_, "__torch_function__", torch._C._disabled_torch_function_impl)
    return own is not torch._C._disabled_torch_function_impl and type_ is not torch.Tensor
