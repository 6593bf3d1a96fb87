"""What looks for changes runs nothing of the objects that it looks at, and sees all that they hold."""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import opwright
from opwright.errors import SideEffect
from opwright.tracing.interface.specs import ArgumentSpec, TensorSpec
from opwright.tracing.trace import trace

pytestmark = pytest.mark.falls_back

X: tuple[ArgumentSpec, ...] = (TensorSpec("x", torch.float32, (3,)),)
CALLED: list[str] = []
_SPECIAL = (
    *("__getattribute__", "__getattr__", "__iter__", "__len__", "__bool__", "__contains__", "__getitem__", "__eq__"),
    *("__hash__", "__repr__", "__str__", "__reversed__", "__copy__", "__deepcopy__", "__reduce_ex__", "__sizeof__"),
    *("__dir__", "__instancecheck__", "__class__", "__wrapped__", "items", "keys", "values", "copy", "get", "pop"),
)
_KINDS: tuple[type, ...] = (
    *(object, dict, list, tuple, set, frozenset, bytearray, collections.OrderedDict, collections.deque),
    *(collections.Counter, collections.defaultdict, collections.UserDict, nn.Module),
)


def _noisy(kind: type) -> type:
    """A subclass, each special method of which says that it was called."""

    def method(name: str, inherited: Any) -> Any:
        def noisy(self: Any, *args: Any, **kwargs: Any) -> Any:
            CALLED.append(f"{kind.__name__}.{name}")
            return inherited(self, *args, **kwargs)

        return noisy

    def asked(self: Any) -> type:
        CALLED.append(f"{kind.__name__}.__class__")
        return kind

    members = {name: method(name, getattr(kind, name)) for name in _SPECIAL if callable(getattr(kind, name, None))}
    members["__class__"] = property(asked)
    return type(f"Noisy{kind.__name__}", (kind,), {**members, "__module__": __name__})


def _stretching(held: Any, box: list[int]) -> Callable[[Tensor], Tensor]:
    """A function that can reach an object, and has a line that may change another."""

    def stretched(x: Tensor) -> Tensor:
        local = [held, box]
        local.append(x)
        return x * 2

    return stretched


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.__name__)
def test_code_of_objects_within_reach_is_not_run(kind: type) -> None:
    held = _noisy(kind)()
    function = _stretching(held, [1])
    CALLED.clear()
    trace(function, X)
    assert CALLED == []


class Slotted:
    """An object whose attribute lies in a slot, behind a property of the same name."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        Slotted.__dict__["count"].__set__(self, 0)


class Behind(Slotted):
    """See `Slotted`."""

    @property
    def count(self) -> int:  # type: ignore[override]
        CALLED.append("count")
        return 7

    def __iter__(self) -> Iterator[int]:
        CALLED.append("iter")
        return iter(())


def test_a_property_in_front_of_a_slot_is_not_asked() -> None:
    function = _stretching(Behind(), [1])
    CALLED.clear()
    trace(function, X)
    assert CALLED == []


def assert_counting_is_refused(held: Any, seen: Any) -> None:
    """A function that counts its calls in an object, perhaps by way of another, is refused and leaves no count."""

    def counted(x: Tensor) -> Tensor:
        seen.calls += 1
        return x * 2

    with pytest.raises(SideEffect, match="changes"):
        trace(counted, X)
    assert held.calls == 0


@pytest.mark.parametrize("kind", [dict, list, set, tuple, collections.deque, collections.OrderedDict, bytearray])
def test_attributes_of_containers_are_seen_to_change(kind: type) -> None:
    held = type("Counting", (kind,), {"__module__": __name__})()
    held.calls = 0

    assert_counting_is_refused(held, held)


def test_what_is_behind_a_weak_proxy_is_seen_to_change() -> None:
    held = nn.Module()
    held.calls = 0
    assert_counting_is_refused(held, weakref.proxy(held))


@pytest.mark.falls_back
def test_a_function_may_set_the_gradient_of_its_argument() -> None:
    def marks(x: torch.Tensor) -> torch.Tensor:
        x.grad = torch.ones(2)
        return x * 2

    operator = opwright.operator(marks)
    for _ in range(3):
        x = torch.tensor([1.0, 2.0])
        operator(x)
        assert x.grad is not None
        assert torch.equal(x.grad, torch.ones(2))
