"""Overloads: which arguments a function of PyTorch takes, from ATen's schemas.

Builtin functions have no signature, and documented ones are wrong for some; the schemas are what the parser of their
arguments was generated from. Functions in Python are asked themselves.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.overrides import get_testing_overrides

from opwright.tensors.spellings.table import Function, families, spelling_of

MISSING = inspect.Parameter.empty
_LEFT_OUT = ("Dimname", "t[]", "AnyEnumType", "List[t]", "Stream")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: `type` is ATen's word for it, or "Any"; `default` is `MISSING` without one."""

    name: str
    type: str
    is_keyword: bool
    default: Any


@dataclass(frozen=True, slots=True)
class Overload:
    """The parameters of one way to call a function; those called by name only come last."""

    parameters: tuple[Parameter, ...]

    @property
    def positional(self) -> tuple[Parameter, ...]:
        """Those that may be given by position."""
        return tuple(parameter for parameter in self.parameters if not parameter.is_keyword)

    @property
    def by_name(self) -> tuple[Parameter, ...]:
        """Those that can be given by name only."""
        return tuple(parameter for parameter in self.parameters if parameter.is_keyword)


@cache
def overloads(function: Function) -> tuple[Overload, ...]:
    """The overloads of a function; none if nothing is known of its arguments.

    Those with named dimensions and those that write into `out` are left out.
    """
    spelling = spelling_of(function)
    if spelling.is_attribute:
        return (Overload((Parameter("self", "Tensor", False, MISSING),)),)
    if inspect.isfunction(function) and (own := _of_python(function)):
        return own
    own_name = getattr(function, "__name__", spelling.attribute)
    for name in dict.fromkeys((own_name, spelling.family)):
        if not name.startswith("__") and (found := _of_schema(name)):
            return found
    plain = families().get(spelling.family, ())
    if plain and plain[0].function is not function and not inspect.isfunction(plain[0].function):
        return overloads(plain[0].function)
    return _of_testing(function)


def takes_many(function: Function) -> bool:
    """Whether a list of numbers may be given as arguments of their own: `x.permute(1, 0)`."""
    if not spelling_of(function).is_method:
        return False
    return any(
        len(overload.positional) == 2 and overload.positional[1].type in ("List[int]", "List[SymInt]")
        for overload in overloads(function)
    )


def _of_schema(name: str) -> tuple[Overload, ...]:
    read = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        arguments = schema.arguments
        types = [str(argument.type) for argument in arguments]
        written = schema.overload_name.endswith("out") or any(argument.is_out for argument in arguments)
        if written or not any("Tensor" in type_ for type_ in types):
            continue
        if any(word in type_ for type_ in types for word in _LEFT_OUT):
            continue
        read.append(arguments)
    by_name = {argument.name for arguments in read for argument in arguments if argument.kwarg_only}
    return tuple(dict.fromkeys(Overload(tuple(_parameter(each, by_name) for each in arguments)) for arguments in read))


def read_schema(schema: Any) -> Overload:
    """The overload that one schema of an operation is."""
    return Overload(tuple(_parameter(argument, set()) for argument in schema.arguments))


def _parameter(argument: Any, by_name: set[str]) -> Parameter:
    default = argument.default_value if argument.has_default_value() else MISSING
    if isinstance(default, list):
        default = tuple(default)
    is_keyword = argument.kwarg_only or (argument.name in by_name and default is not MISSING)
    return Parameter(argument.name, str(argument.type), is_keyword, default)


def _of_python(function: Function) -> tuple[Overload, ...]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ()
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in signature.parameters.values()):
        return ()
    read = []
    for name, each in signature.parameters.items():
        if each.kind is not inspect.Parameter.VAR_KEYWORD:
            read.append(Parameter(name, "Any", each.kind is inspect.Parameter.KEYWORD_ONLY, each.default))
    return (Overload(tuple(read)),) if read else ()


def _of_testing(function: Function) -> tuple[Overload, ...]:
    """What PyTorch's own tests of overrides call it with."""
    override = _testing().get(function)
    return _of_python(override) if override is not None else ()


@cache
def _testing() -> dict[Function, Function]:
    return dict(get_testing_overrides())
