"""Precedence: which of several types is asked to serve a call, which refuses, and what comes out.

PyTorch asks the types of the arguments from left to right, but a subclass before its superclasses; a type that returns
NotImplemented leaves the call to the next. `precedence` makes real calls with objects of the types and writes down
what happens, in all orders of the arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from opwright.errors import HandlerRefused
from opwright.report.shown import Shown
from opwright.tensors.like.operators import order

if TYPE_CHECKING:
    from rich.console import RenderableType

_THREE = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """A type that was asked, and whether it answered."""

    type: str
    answered: bool


@dataclass(frozen=True, slots=True)
class Meeting:
    """One call of objects of several types.

    Attributes:
        arguments: The types of the arguments, from left to right.
        function: The function that was called.
        order: The types in the order in which PyTorch's rule says they are asked.
        asked: The types that were asked, in their order. The last one answered, or raised, or all returned
            NotImplemented.
        outcome: The type of the result, or the exception.
        raised: Whether it raised.
    """

    arguments: tuple[str, ...]
    function: str
    order: tuple[str, ...]
    asked: tuple[Asked, ...]
    outcome: str
    raised: bool

    @property
    def refused(self) -> tuple[str, ...]:
        """The types that returned NotImplemented."""
        return tuple(each.type for each in self.asked if not each.answered)

    @property
    def as_ruled(self) -> bool:
        """Whether the types were asked in the order of PyTorch's rule."""
        return tuple(each.type for each in self.asked) == self.order[: len(self.asked)]


@dataclass(frozen=True, slots=True, repr=False)
class PrecedenceReport(Shown):
    """What happens where types meet, in all orders of two and three of them."""

    types: tuple[str, ...]
    meetings: tuple[Meeting, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as values that `json.dumps` takes."""
        return {"types": list(self.types), "meetings": [asdict(meeting) for meeting in self.meetings]}

    to_json = to_dict

    def _table(self) -> RenderableType:
        from opwright.report.precedence_table import precedence_table  # imports rich

        return precedence_table(self.to_dict())


def precedence(
    *types: type, samples: Mapping[type, Any] | None = None, functions: Sequence[Callable[..., Any]] = ()
) -> PrecedenceReport:
    """Try what happens where objects of several types meet in a call, in all orders of two and of three of them.

    Calls are made for two types with each of `functions`, and for three with torch.where or torch.cat.

    Args:
        types: Two or more types; `torch.Tensor` may be among them.
        samples: An object of each type. Without them a type is asked with an object that has no state, so that the
            order and the refusals are known, and what its handlers do is not.
        functions: Functions of two tensors; torch.add if there are none.

    Raises:
        HandlerRefused: There are fewer than two types, or one is not asked by PyTorch.
    """
    if len(types) < 2:
        raise HandlerRefused("precedence is between types", hint="give two or more")
    for each in types:
        if not hasattr(each, "__torch_function__"):
            raise HandlerRefused(
                f"{each.__name__} has no __torch_function__, so PyTorch never asks it", hint="leave it out"
            )
    objects = {each: _object_of(each, samples or {}) for each in types}
    called = tuple(functions) or (torch.add,)
    meetings = [_meet(function, chosen, objects) for function in called for chosen in itertools.permutations(types, 2)]
    if len(types) >= _THREE:
        meetings += [_meet(torch.cat, chosen, objects) for chosen in itertools.permutations(types, _THREE)]
    return PrecedenceReport(tuple(each.__name__ for each in types), tuple(meetings))


def _object_of(type_: type, samples: Mapping[type, Any]) -> Any:
    if type_ in samples:
        return samples[type_]
    if type_ is torch.Tensor:
        return torch.ones(2, 2)
    if issubclass(type_, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            return torch.ones(2, 2).as_subclass(type_)
    return object.__new__(type_)


def _meet(function: Callable[..., Any], chosen: Sequence[type], objects: Mapping[type, Any]) -> Meeting:
    """Call a function with objects of types, and write down who is asked."""
    asked: list[Asked] = []
    arguments = [objects[each] for each in chosen]
    overriding = [each for each in chosen if each is not torch.Tensor]
    with _watched(overriding, asked):
        try:
            result = function(arguments) if function is torch.cat else function(*arguments)
            outcome, raised = type(result).__name__, False
        except Exception as error:  # of the types' own code, or PyTorch's that all refused
            outcome, raised = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}", True
    return Meeting(
        tuple(each.__name__ for each in chosen),
        getattr(function, "__name__", str(function)),
        tuple(each.__name__ for each in order(overriding)),
        tuple(asked),
        outcome[:200],
        raised,
    )


@contextmanager
def _watched(types: Sequence[type], asked: list[Asked]) -> Iterator[None]:
    """Write down calls of the types' `__torch_function__`, but not those that they make themselves."""
    inside = [False]
    kept = [(each, each.__dict__.get("__torch_function__")) for each in dict.fromkeys(types)]
    watchers = {each: _watcher(each, asked, inside) for each in dict.fromkeys(types)}
    try:
        for each, watcher in watchers.items():
            each.__torch_function__ = watcher  # type: ignore[attr-defined]
        yield
    finally:
        for each, own in kept:
            if own is None:
                del each.__torch_function__  # type: ignore[attr-defined]
            else:
                each.__torch_function__ = own  # type: ignore[attr-defined]


def _watcher(type_: type, asked: list[Asked], inside: list[bool]) -> Any:
    own = type_.__torch_function__  # type: ignore[attr-defined]

    def watch(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if inside[0]:
            return own(func, types, args, kwargs)
        inside[0] = True
        position = len(asked)
        asked.append(Asked(type_.__name__, True))
        try:
            result = own(func, types, args, kwargs)
        finally:
            inside[0] = False
        if result is NotImplemented:
            asked[position] = Asked(type_.__name__, False)
        return result

    return classmethod(watch)
