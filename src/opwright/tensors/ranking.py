"""Precedence: which of several types is asked to serve a call, which refuses, and what comes out.

PyTorch asks the types of the arguments from left to right, but a subclass before its superclasses; a type that returns
NotImplemented leaves the call to the next. Types with `__torch_function__` are asked first, then those that only have
`__torch_dispatch__`, as wrappers do. `precedence` makes real calls with objects of the types and writes down what
happens, in all orders of the arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from opwright.errors import HandlerRefused
from opwright.report.shown import Shown
from opwright.tensors.like.handler import overrides
from opwright.tensors.like.operators import order
from opwright.tensors.wrapper.base import Wrapper

if TYPE_CHECKING:
    from rich.console import RenderableType

_THREE = 3
_QUESTIONS = ("__torch_function__", "__torch_dispatch__")
"""The methods that types are asked by, in their order."""


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
    *types: type,
    samples: Mapping[type, Any] | None = None,
    functions: Sequence[Callable[..., Any]] | Callable[..., Any] = (),
) -> PrecedenceReport:
    """Try what happens where objects of several types meet in a call, in all orders of two and of three of them.

    Calls are made for two types with each of `functions`, and for three with torch.where or torch.cat.

    Args:
        types: Two or more types; `torch.Tensor` may be among them.
        samples: An object of each type. Without them a type is asked with an object that has no state (a wrapper is
            around ones, and its metadata is None), so that the order and the refusals are known, and what its
            handlers do is not.
        functions: Functions of two tensors; torch.add if there are none.

    Raises:
        HandlerRefused: There are fewer than two types, one is not asked by PyTorch, or a sample is of another type.
    """
    if len(types) < 2:
        raise HandlerRefused("precedence is between types", hint="give two or more")
    for each in types:
        if not isinstance(each, type):
            raise HandlerRefused(f"{each!r} is no type", hint=f"give {type(each).__name__}, and the object in samples=")
        if each is not torch.Tensor and _question(each) is None:
            raise HandlerRefused(
                f"{each.__name__} has no __torch_function__, so PyTorch never asks it", hint="leave it out"
            )
    if len(set(types)) < len(types):
        raise HandlerRefused("a type is given twice", hint="give each once")
    known = _checked(samples, types)
    objects = {each: _object_of(each, known) for each in types}
    called = (functions,) if callable(functions) else tuple(functions) or (torch.add,)
    meetings = [_meet(function, chosen, objects) for function in called for chosen in itertools.permutations(types, 2)]
    if len(types) >= _THREE:
        meetings += [_meet(torch.cat, chosen, objects) for chosen in itertools.permutations(types, _THREE)]
    return PrecedenceReport(tuple(each.__name__ for each in types), tuple(meetings))


def _checked(samples: Mapping[type, Any] | None, types: Sequence[type]) -> Mapping[type, Any]:
    found = {} if samples is None else samples
    if not isinstance(found, Mapping):
        raise HandlerRefused("samples= are objects by their types", hint="write samples={T: T(...)}")
    for each, sample in found.items():
        if each in types and not isinstance(sample, each):
            raise HandlerRefused(
                f"the sample of {each.__name__} is a {type(sample).__name__}", hint="write samples={T: T(...)}"
            )
    return found


def _question(type_: type) -> str | None:
    """The name of the method that PyTorch asks a type by; None if it never asks it."""
    if overrides(type_):
        return "__torch_function__"
    plain: Any = torch.Tensor
    own = getattr(type_, "__torch_dispatch__", plain.__torch_dispatch__)
    return "__torch_dispatch__" if own is not plain.__torch_dispatch__ else None


def _object_of(type_: type, samples: Mapping[type, Any]) -> Any:
    if type_ in samples:
        return samples[type_]
    if type_ is torch.Tensor:
        return torch.ones(2, 2)
    if issubclass(type_, Wrapper):
        names = type_.names
        return type_.made([torch.ones(2, 2) for _ in names.data], [getattr(type_, each, None) for each in names.meta])
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
        tuple(each.__name__ for question in _QUESTIONS for each in order(_asked_by(question, overriding))),
        tuple(asked),
        outcome[:200],
        raised,
    )


def _asked_by(question: str, types: Iterable[type]) -> list[type]:
    return [each for each in types if _question(each) == question]


@contextmanager
def _watched(types: Sequence[type], asked: list[Asked]) -> Iterator[None]:
    """Write down when the types are asked until one answers, but not what they call themselves."""
    inside = [False]
    methods = [(each, question) for question in _QUESTIONS for each in _asked_by(question, dict.fromkeys(types))]
    kept = [vars(each).get(question) for each, question in methods]
    watchers = [_watcher(each, getattr(each, question), asked, inside) for each, question in methods]
    try:
        for (each, question), watcher in zip(methods, watchers, strict=True):
            setattr(each, question, watcher)
        yield
    finally:
        for (each, question), own in zip(methods, kept, strict=True):
            if own is None:
                delattr(each, question)
            else:
                setattr(each, question, own)


def _watcher(type_: type, own: Callable[..., Any], asked: list[Asked], inside: list[bool]) -> Any:
    def watch(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if inside[0] or (asked and asked[-1].answered):
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
