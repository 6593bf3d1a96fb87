"""Modules, or kinds of their calls, that kernels do not serve are looked at once; then calls go to the forward."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import opwright
from opwright.nn.reference import ModuleReference

pytestmark = pytest.mark.falls_back


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class OfLinear(nn.Module):
    """A layer with something behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.calls, self.hidden = 0, np.array([double], dtype=object)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.behind(self.linear(x))

    def behind(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class Hidden(OfLinear):
    """It calls a function that is in an array of objects."""

    def behind(self, x: torch.Tensor) -> torch.Tensor:
        called: torch.Tensor = self.hidden[0](x)
        return called


class ByModules(OfLinear):
    """It finds a function among all modules."""

    def behind(self, x: torch.Tensor) -> torch.Tensor:
        called: torch.Tensor = sys.modules[__name__].double(x)
        return called


class Counts(OfLinear):
    """It counts its calls."""

    def behind(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * 2


class Branches(OfLinear):
    """It looks at a value."""

    def behind(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else -x


class Chooses(OfLinear):
    """Its result is as long as values say."""

    def behind(self, x: torch.Tensor) -> torch.Tensor:
        return x[x > 0] * 2


class Alone(nn.Module):
    """It has no module inside, and changes its argument."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2).add_(1)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that are traced meanwhile."""
    names: list[str] = []
    written = ModuleReference.__call__

    def noted(self: ModuleReference, *leaves: object) -> object:
        names.append(self.__name__)
        return written(self, *leaves)

    monkeypatch.setattr(ModuleReference, "__call__", noted)
    return names


@pytest.mark.parametrize(
    "make",
    [Hidden, ByModules, Counts, Branches, Chooses, Alone, lambda: nn.ReLU(inplace=True)],
    ids=["hidden", "by modules", "counts", "branches", "chooses", "alone", "in place"],
)
@pytest.mark.parametrize("records", [False, True])
def test_calls_after_a_refusal_are_not_traced_again(
    make: Callable[[], nn.Module], traced: list[str], *, records: bool
) -> None:
    written = make()
    served, x = opwright.module(written), torch.ones(2, 3)
    with torch.set_grad_enabled(records):
        for _ in range(3):
            served(x.clone())
        assert traced
        traced.clear()
        for _ in range(3):
            torch.testing.assert_close(served(x.clone()), make_like(make, written)(x.clone()))
    assert traced == []
    assert "not called yet" not in str(served.explain()).splitlines()[0]


def make_like(make: Callable[[], nn.Module], written: nn.Module) -> nn.Module:
    made = make()
    made.load_state_dict(written.state_dict())
    return made


def test_what_cannot_be_compared_is_told_with_its_reason() -> None:
    served = opwright.module(Hidden())
    with pytest.warns(opwright.FallbackWarning, match="an array of 1 elements, which may be another at each call"):
        served(torch.ones(2, 3))
    assert "an array" in str(served.explain())
