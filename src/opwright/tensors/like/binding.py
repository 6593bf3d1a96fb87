"""Binding: the arguments of a call → the arguments of a handler, whatever spelling the call has.

(overload, given values by name) ─→ (args, kwargs) of the handler, or `NotTaken`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opwright.tensors.like.handler import Handler, is_tensor_like
from opwright.tensors.spellings.aliases import OTHER_KEYWORDS
from opwright.tensors.spellings.overloads import MISSING, Overload, Parameter, overloads, takes_many
from opwright.tensors.spellings.table import Spelling

_NN = "torch.nn.functional."
_NUMBERS = ("number", "int", "float", "SymInt", "complex", "bool")


class NotTaken(Exception):
    """A handler does not take an argument of a call, which is then left to the fallback."""


def arguments_for(
    handler: Handler, spelling: Spelling, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Bind a call of a spelling, and turn it into a call of the handler of its family.

    Raises:
        NotTaken: The call fits no overload, or gives something that the handler has no parameter for.
    """
    overload, given = bound(spelling, args, kwargs)
    own_args, own_kwargs = _turned(handler, spelling, overload, given)
    reached = {*handler.positional[: len(own_args)], *own_kwargs}
    if not reached >= set(handler.needed):
        raise NotTaken
    return own_args, own_kwargs


def _turned(
    handler: Handler, spelling: Spelling, overload: Overload, given: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    if spelling.name.startswith(_NN) != handler.origin.name.startswith(_NN):
        return _by_name(handler, overload, given)
    positional = overload.positional
    if spelling.is_swapped != handler.origin.is_swapped and len(positional) > 1:
        first, second = (each.name for each in positional[:2])
        given = {**given, first: given[second], second: given[first]} if {first, second} <= set(given) else given
    return _by_position(handler, overload, given)


def bound(spelling: Spelling, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Overload, dict[str, Any]]:
    """The first overload that a call fits, and what it gives, by the names of its parameters.

    Raises:
        NotTaken: It fits none.
    """
    many = takes_many(spelling.function)
    for are_tensors in (False, True):  # PyTorch takes numbers for tensors, where no overload takes numbers
        for overload in overloads(spelling.function):
            given = _bound(overload, _gathered(args) if many else args, kwargs)
            if given is not None and all(
                _fits(each, given[each.name], are_tensors) for each in overload.parameters if each.name in given
            ):
                return overload, given
    raise NotTaken


def _gathered(args: Sequence[Any]) -> Sequence[Any]:
    """`x.permute(1, 0)` is `x.permute((1, 0))`."""
    return (args[0], tuple(args[1:])) if len(args) > 1 and isinstance(args[1], int) else args


def _bound(overload: Overload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    if len(args) > len(overload.positional):
        return None
    given = {parameter.name: value for parameter, value in zip(overload.positional, args, strict=False)}
    names = {parameter.name for parameter in overload.parameters}
    for key, value in kwargs.items():
        name = key if key in names else next((each for each in OTHER_KEYWORDS.get(key, ()) if each in names), None)
        if name is None or name in given:
            return None
        given[name] = value
    needed = [each.name for each in overload.parameters if each.default is MISSING and each.name not in given]
    return None if needed else given


def _fits(parameter: Parameter, value: Any, are_tensors: bool) -> bool:
    kind = parameter.type
    if kind.startswith("Optional["):
        if value is None:
            return True
        kind = kind.removeprefix("Optional[").removesuffix("]")
    if kind == "Tensor":
        return is_tensor_like(value) or (are_tensors and isinstance(value, (bool, int, float, complex)))
    if kind in _NUMBERS:
        return not is_tensor_like(value) and not isinstance(value, (str, list, tuple))
    if kind.startswith("List["):
        return not is_tensor_like(value) and not isinstance(value, str)
    return True


def _by_position(handler: Handler, overload: Overload, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for position, parameter in enumerate(overload.positional):
        if parameter.name not in given:
            continue
        value = given[parameter.name]
        own = handler.name_at(overload, position)
        if own is not None and len(args) == position:
            args.append(value)
        elif own is not None:
            kwargs[own] = value
        elif handler.has_rest and len(args) == position:
            args.append(value)
        else:
            _give(handler, parameter, value, kwargs)
    for parameter in overload.by_name:
        if parameter.name in given:
            _give(handler, parameter, given[parameter.name], kwargs)
    return args, kwargs


def _by_name(handler: Handler, overload: Overload, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Of functions whose parameters are in another order, as in torch.nn.functional."""
    first, *others = overload.parameters
    kwargs: dict[str, Any] = {}
    for parameter in others:
        if parameter.name in given:
            _give(handler, parameter, given[parameter.name], kwargs)
    return [given[first.name]], kwargs


def _give(handler: Handler, parameter: Parameter, value: Any, kwargs: dict[str, Any]) -> None:
    """Give an argument by its name; what is the default need not be taken."""
    if parameter.name in handler.keywords or handler.has_names:
        kwargs[parameter.name] = value
    elif parameter.name != "_stacklevel" and not _is_default(parameter, value):
        raise NotTaken


def _is_default(parameter: Parameter, value: Any) -> bool:
    return not is_tensor_like(value) and (value is parameter.default or bool(value == parameter.default))
