"""Binding: the arguments of a call → the arguments of a handler, whatever spelling the call has.

(overload, places of the arguments by name) ─→ Recipe, or `NotTaken`; a recipe is for all calls of one form
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opwright.tensors.like.handler import Handler, is_tensor_like
from opwright.tensors.spellings.aliases import OTHER_KEYWORDS
from opwright.tensors.spellings.overloads import MISSING, Overload, Parameter, overloads, takes_many
from opwright.tensors.spellings.table import Spelling

_NN = "torch.nn.functional."
_NUMBERS = ("number", "int", "float", "SymInt", "complex", "bool")


class NotTaken(Exception):
    """A handler does not take an argument of a call, which is then left to the fallback."""


Place = int | str
Checks = list[tuple[Parameter, Place]]
_REST = "*"
"""The place of all arguments after the first, which are one for the function."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Where the arguments of a handler are in a call: a position, or a name.

    Attributes:
        args: Of its positional arguments.
        kwargs: Of those by name.
        checks: Of arguments that it has no parameter for, which must be the default.
        has_rest: Whether all arguments after the first are one.
        same: Their names, if the handler takes all arguments by position as they are, and some of those by name.
    """

    args: tuple[Place, ...]
    kwargs: tuple[tuple[str, Place], ...]
    checks: tuple[tuple[Parameter, Place], ...]
    has_rest: bool
    same: tuple[str, ...] | None

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments of the handler, from those of a call.

        Raises:
            NotTaken: The handler has no parameter for something that the call gives.
        """
        at: Any = {**kwargs, _REST: tuple(args[1:])} if self.has_rest else kwargs
        for parameter, place in self.checks:
            if not _is_default(parameter, args[place] if type(place) is int else at[place]):
                raise NotTaken
        return (
            [args[place] if type(place) is int else at[place] for place in self.args],
            {name: args[place] if type(place) is int else at[place] for name, place in self.kwargs},
        )


def form_of(spelling: Spelling) -> Callable[[Sequence[Any], Mapping[str, Any]], tuple[Any, ...]]:
    """What recipes of a spelling depend on: which arguments there are, and their types if these choose an overload."""
    if all(each.type == "Any" for overload in overloads(spelling.function) for each in overload.parameters):
        return lambda args, kwargs: (len(args), *kwargs)
    return lambda args, kwargs: (len(args), *kwargs, *map(type, args), *map(type, kwargs.values()))


def recipe_for(handler: Handler, spelling: Spelling, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Recipe:
    """Bind a call of a spelling, and turn it into a call of the handler of its family.

    Raises:
        NotTaken: The call fits no overload, or gives something that the handler has no parameter for.
    """
    overload = bound(spelling, args, kwargs)
    has_rest = takes_many(spelling.function) and _gathered(args) is not args
    places: Sequence[Place] = (0, _REST) if has_rest else range(len(args))
    given = _bound(overload, places, dict(zip(kwargs, kwargs, strict=True))) or {}
    checks: Checks = []
    own_args, own_kwargs = _turned(handler, spelling, overload, given, checks)
    reached = {*handler.positional[: len(own_args)], *own_kwargs}
    if not reached >= set(handler.needed):
        raise NotTaken
    are_same = own_args == [*range(len(args))] and all(name == place for name, place in own_kwargs.items())
    same = tuple(own_kwargs) if are_same and not checks else None
    return Recipe(tuple(own_args), tuple(own_kwargs.items()), tuple(checks), has_rest, same)


def _turned(
    handler: Handler, spelling: Spelling, overload: Overload, given: dict[str, Place], checks: Checks
) -> tuple[list[Place], dict[str, Place]]:
    if spelling.name.startswith(_NN) != handler.origin.name.startswith(_NN):
        return _by_name(handler, overload, given, checks)
    positional = overload.positional
    if spelling.is_swapped != handler.origin.is_swapped and len(positional) > 1:
        first, second = (each.name for each in positional[:2])
        given = {**given, first: given[second], second: given[first]} if {first, second} <= set(given) else given
    return _by_position(handler, overload, given, checks)


def bound(spelling: Spelling, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Overload:
    """The first overload that a call fits.

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
                return overload
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


def _by_position(
    handler: Handler, overload: Overload, given: Mapping[str, Place], checks: Checks
) -> tuple[list[Place], dict[str, Place]]:
    args: list[Place] = []
    kwargs: dict[str, Place] = {}
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
            _give(handler, parameter, value, kwargs, checks)
    for parameter in overload.by_name:
        if parameter.name in given:
            _give(handler, parameter, given[parameter.name], kwargs, checks)
    return args, kwargs


def _by_name(
    handler: Handler, overload: Overload, given: Mapping[str, Place], checks: Checks
) -> tuple[list[Place], dict[str, Place]]:
    """Of functions whose parameters are in another order, as in torch.nn.functional."""
    first, *others = overload.parameters
    kwargs: dict[str, Place] = {}
    for parameter in others:
        if parameter.name in given:
            _give(handler, parameter, given[parameter.name], kwargs, checks)
    return [given[first.name]], kwargs


def _give(handler: Handler, parameter: Parameter, place: Place, kwargs: dict[str, Place], checks: Checks) -> None:
    """Give an argument by its name; what is the default need not be taken."""
    if parameter.name in handler.keywords or handler.has_names:
        kwargs[parameter.name] = place
    elif parameter.name != "_stacklevel":
        checks.append((parameter, place))


def _is_default(parameter: Parameter, value: Any) -> bool:
    return not is_tensor_like(value) and (value is parameter.default or bool(value == parameter.default))
