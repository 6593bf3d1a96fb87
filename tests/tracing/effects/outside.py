"""Objects outside of functions, to be changed by them."""

from __future__ import annotations

import collections
import contextvars
import functools
import logging
import types
from typing import Any

import torch


class Box:
    made = 0

    def __init__(self) -> None:
        self.last: Any = None
        self.items: list[Any] = []

    def keep(self, value: Any) -> None:
        self.items.append(value)

    @functools.cached_property
    def scale(self) -> torch.Tensor:
        return torch.full((3,), 2.0)


class Slots:
    __slots__ = ("value",)


STORE: dict[Any, Any] = {}
ORDERED: collections.OrderedDict[str, Any] = collections.OrderedDict(a=1, b=2)
LOG: list[Any] = []
SEEN: set[Any] = set()
LATEST: collections.deque[Any] = collections.deque(maxlen=3)
NESTED: dict[str, Any] = {"deep": [{"inside": []}]}
COUNT = 0
BOX = Box()
SLOTS = Slots()
SPACE = types.SimpleNamespace(value=1)
WEIGHT = torch.ones(3)
NUMBERS = iter(range(1000))
VARIABLE: contextvars.ContextVar[float] = contextvars.ContextVar("VARIABLE", default=1.0)
LOGGER = logging.getLogger("opwright.tests.effects")


@functools.cache
def remembered(size: int) -> torch.Tensor:
    return torch.ones(size)


@functools.cache
def next_of(number: int) -> int:
    return number + 1
