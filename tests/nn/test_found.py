"""Modules as they are found: configuration objects, helpers and functions in attributes are read as they are now."""

from __future__ import annotations

import enum
import functools
import sys
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import nn

import opwright
from tests.suite.nights import mostly_at_night


class Order(enum.Enum):
    """Where the activation stands."""

    FIRST = "first"
    LAST = "last"


class Helper:
    """An object with a weight of its owner."""

    def __init__(self, owner: nn.Module) -> None:
        self.owner, self.weight, self.power = weakref.ref(owner), owner.weight, 2

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight**self.power


class Powers(NamedTuple):
    """A weight of its owner beside a number, by name."""

    weight: torch.Tensor
    power: int


class Found(nn.Module):
    """Attributes of many kinds, and one that no code names."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.inner = nn.Parameter(torch.randn(4)), nn.Linear(4, 4)
        self.config, self.order = SimpleNamespace(scale=2.0), Order.FIRST
        self.act = functools.partial(nn.functional.gelu, approximate="tanh")
        self.helper, self.run, self.blocks = Helper(self), self.inner.forward, [nn.Linear(4, 4)]
        self.offset, self.file, self.powers = torch.ones(4), sys.stdout, Powers(self.weight, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.act(x) if self.order is Order.FIRST else x
        y = self.blocks[0](self.run(self.helper(y))) + self.offset
        return y * self.config.scale + self.powers.weight**self.powers.power


CHANGES: dict[str, Callable[[nn.Module], object]] = {
    "value of a configuration": lambda m: setattr(m.config, "scale", 3.0),
    "attribute of a helper": lambda m: setattr(m.helper, "power", 3),
    "member of an enum": lambda m: setattr(m, "order", Order.LAST),
    "partial function": lambda m: setattr(m, "act", functools.partial(nn.functional.gelu)),
    "number in a named tuple": lambda m: setattr(m, "powers", m.powers._replace(power=3)),
    "tensor": lambda m: setattr(m, "offset", torch.randn(4)),
    "parameter": lambda m: setattr(m.inner, "weight", nn.Parameter(torch.randn(4, 4))),
    "module in a list": lambda m: m.blocks.__setitem__(0, nn.Linear(4, 4)),
    "tied parameters": lambda m: setattr(m.blocks[0], "weight", m.inner.weight),
}


@pytest.mark.built_together
@pytest.mark.parametrize("name", mostly_at_night(CHANGES, by_day=[*CHANGES][4::4]))
def test_changes_between_calls_are_seen(name: str) -> None:
    torch.manual_seed(0)
    plain = Found()
    served, x = opwright.module(plain), torch.randn(3, 4)
    for change in (lambda _: None, CHANGES[name], lambda _: None):
        change(plain)
        tensors = [*plain.parameters()]
        found, expected = served(x), plain(x)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        gradients = [torch.autograd.grad(y.square().sum(), tensors) for y in (found, expected)]
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-3)
        assert served.last_rung == "cpp"


class Marked(nn.Module):
    """Reads what somebody gave its parameter as attributes: a number, a tensor, or nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))
        self.weight.gain = 2.0  # type: ignore[attr-defined]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x * self.weight * getattr(self.weight, "gain", 1.0))
        return y + self.weight.table if hasattr(self.weight, "table") else y


@pytest.mark.built_together
def test_attributes_of_parameters_are_read_as_they_are() -> None:
    plain = Marked()
    served, x = opwright.module(plain), torch.randn(3, 4)
    for change in (
        lambda: None,
        lambda: setattr(plain.weight, "gain", 3.0),
        lambda: delattr(plain.weight, "gain"),
        lambda: setattr(plain.weight, "table", torch.randn(4)),
        lambda: setattr(plain.weight, "table", torch.randn(4)),
    ):
        change()
        for _ in range(3):
            torch.testing.assert_close(served(x), plain(x), rtol=1e-5, atol=1e-5)
            assert served.last_rung == "cpp"
