"""Parametrizations give a module another class, with a property for each parameter: of a part, and of the whole."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

import opwright
from tests.nn.against_plain import assert_same, outcome
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.falls_back

Change = Callable[[nn.Module], None]


class Scaled(nn.Module):
    """A parametrization that reads an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = 2.0

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.factor


class Whole(nn.Module):
    """Two parameters, and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(3, 4)), nn.Parameter(torch.rand(3))
        self.inner = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(nn.functional.linear(x, self.weight, self.bias)).sin()


class ByParts(Whole):
    """The same, with a step that looks at values."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y if y.sum() < 1e9 else y * 2.0


def scale(name: str) -> Change:
    return lambda module: (
        None
        if parametrize.is_parametrized(module, name)
        else parametrize.register_parametrization(module, name, Scaled()) and None
    )


def as_written(name: str) -> Change:
    return lambda module: (
        parametrize.remove_parametrizations(module, name) and None
        if parametrize.is_parametrized(module, name)
        else None
    )


def on_inner(change: Change) -> Change:
    return lambda module: change(module.inner)


def another_factor(module: nn.Module) -> None:
    for each in module.modules():
        if isinstance(each, Scaled):
            each.factor = 4.0 - each.factor / 2.0


def normed(module: nn.Module) -> None:
    if not parametrize.is_parametrized(module, "weight"):
        parametrizations.weight_norm(module)


CHANGES: dict[str, Change] = {
    "its weight": scale("weight"),
    "its bias": scale("bias"),
    "its weight as written": as_written("weight"),
    "its bias as written": as_written("bias"),
    "the weight of a part": on_inner(scale("weight")),
    "that as written": on_inner(as_written("weight")),
    "a norm of a part": on_inner(normed),
    "another factor": another_factor,
    "evaluation": lambda module: module.eval() and None,
}


@pytest.mark.parametrize("seed", mostly_at_night(range(40), 2))
def test_parametrizations_come_and_go(seed: int) -> None:
    chosen = random.Random(seed)
    torch.manual_seed(seed)
    plain = (ByParts if seed % 2 else Whole)().double()
    served = opwright.module(copy.deepcopy(plain))
    x = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)
    done = []
    for _ in range(6):
        name = chosen.choice(list(CHANGES))
        done.append(name)
        for each in (plain, served):
            CHANGES[name](each)
        if chosen.random() < 0.2:
            done.append("copied")
            plain, served = copy.deepcopy(plain), copy.deepcopy(served)
        try:
            assert_same(outcome(served, [x], {}, seed), outcome(plain, [x], {}, seed))
        except Exception as error:
            raise AssertionError(", ".join(done)) from error


def test_copies_are_served_on_their_own_and_pickles_are_those_of_torch() -> None:
    served = opwright.module(Whole())
    x = torch.rand(2, 4)
    served(x)
    parametrize.register_parametrization(served, "weight", Scaled())
    copied = copy.deepcopy(served)
    with torch.no_grad():
        copied.parametrizations.weight.original.zero_()
    assert not torch.equal(copied(x), served(x))
    torch.testing.assert_close(served(x), Whole.forward(served._written(), x))
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(served)
    parametrize.remove_parametrizations(served, "weight")
    torch.testing.assert_close(pickle.loads(pickle.dumps(served))(x), served(x))
