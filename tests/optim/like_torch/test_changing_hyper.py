"""Hyper-parameters that change between steps, against torch.optim: switched on and off, and to other numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import OneCycleLR

import opwright
import opwright.optim
from tests.optim.trained import parameters, train
from tests.suite.nights import mostly_at_night

SHAPES = ((3, 4), (5,))
RATES = (0.1, 0.03)
DECAYS = (0.1, 0.0)
BETAS = ((0.9, 0.99), (0.5, 0.9), [0.8, 0.95])
# By optimizer: the values of hyper-parameters. Adam and RMSprop of torch have a KeyError where a flag is first set
# after the first step; so these begin with the first value.
CHANGES: dict[str, dict[str, tuple[Any, ...]]] = {
    "SGD": {"momentum": (0.0, 0.9), "dampening": (0.0, 0.5), "nesterov": (False,)},
    "SGD nesterov": {"momentum": (0.5, 0.9), "nesterov": (True, False), "weight_decay": DECAYS},
    "SGD with a buffer": {"momentum": (0.9, 0.0), "dampening": (0.5,), "lr": RATES},
    "RMSprop": {"momentum": (0.9, 0.0), "centered": (True, False), "alpha": (0.9, 0.5)},
    "Adam": {"amsgrad": (True, False), "betas": BETAS, "weight_decay": DECAYS},
    "AdamW": {"amsgrad": (True, False), "betas": BETAS, "weight_decay": DECAYS, "lr": RATES},
    "Adamax": {"betas": BETAS, "weight_decay": DECAYS},
    "NAdam": {"betas": BETAS, "decoupled_weight_decay": (False, True), "momentum_decay": (4e-3, 0.0)},
    "RAdam": {"betas": BETAS, "decoupled_weight_decay": (False, True), "weight_decay": DECAYS},
    "Adagrad": {"lr": RATES, "lr_decay": (0.1, 0.0), "weight_decay": DECAYS},
    "Adadelta": {"rho": (0.9, 0.5), "weight_decay": DECAYS, "maximize": (False, True)},
    "Rprop": {"etas": ((0.5, 1.2), [0.25, 2.0]), "step_sizes": ((1e-6, 50.0), (1e-3, 0.05))},
    "ASGD": {"alpha": (0.75, 0.5), "t0": (1.0, 3.0), "lambd": (1e-4, 0.1)},
    "Adafactor": {"d": (1.0, 2.0), "eps": ((None, 1e-3), (0.0, 1e-3), (1e-4, 0.1)), "weight_decay": DECAYS},
}  # fmt: skip
BY_DAY = [("SGD with a buffer", 0), ("Rprop", 0)]


def cases() -> Iterator[tuple[str, int]]:
    yield from BY_DAY
    for description in CHANGES:
        for seed in range(4):
            if (description, seed) not in BY_DAY:
                yield description, seed


def run(library: Any, description: str, seed: int) -> Any:
    """Take steps between which every hyper-parameter changes at random."""
    drawn, values = random.Random(seed), CHANGES[description]
    optimizer = getattr(library, description.partition(" ")[0])(parameters(SHAPES), lr=0.1)
    (group,) = optimizer.param_groups
    group |= {name: choices[0] for name, choices in values.items()}
    for step in range(10):
        if step > 1:
            group |= {name: drawn.choice(choices) for name, choices in values.items()}
        train(optimizer, 1, seed=step)
    return optimizer


@pytest.mark.parametrize(("description", "seed"), mostly_at_night(cases(), BY_DAY))
def test_steps_are_those_of_torch(description: str, seed: int) -> None:
    ours, theirs = (run(library, description, seed) for library in (opwright.optim, torch.optim))
    for mine, other in zip(ours.param_groups[0]["params"], theirs.param_groups[0]["params"], strict=True):
        torch.testing.assert_close(mine, other, equal_nan=True)
        for name, value in theirs.state[other].items():
            torch.testing.assert_close(ours.state[mine][name], value, equal_nan=True)


def test_momentum_that_a_schedule_switches_on() -> None:
    def cycled(library: Any) -> list[torch.Tensor]:
        optimizer = library.SGD(parameters(SHAPES), lr=0.1, momentum=0.9)
        schedule = OneCycleLR(optimizer, max_lr=0.1, total_steps=8, base_momentum=0.0, max_momentum=0.95)
        for step in range(6):
            train(optimizer, 1, seed=step)
            schedule.step()
        return optimizer.param_groups[0]["params"]

    torch.testing.assert_close(cycled(opwright.optim), cycled(torch.optim))


@opwright.optimizer(state={"average": lambda param, *, share, **_: param.clone() if share > 0.5 else None})
def Averaged(param: Any, grad: Any, average: Any, step: Any, *, lr: float = 0.1, share: float = 0.0) -> Any:
    new = param - lr * grad
    return new, None if average is None else average + share * (new - average)


def test_a_state_that_a_number_asks_for_begins_when_it_does() -> None:
    param = torch.ones(3, requires_grad=True)
    optimizer = Averaged([param])
    for share, has_average in ((0.1, False), (0.2, False), (0.75, True), (0.1, True)):
        optimizer.param_groups[0]["share"] = share
        param.grad = torch.ones(3)
        optimizer.step()
        assert ("average" in optimizer.state[param]) == has_average
    torch.testing.assert_close(param.detach(), torch.full((3,), 0.6))


def without_buffer(state: dict[str, Any]) -> None:
    state["momentum_buffer"] = None


def without_key(state: dict[str, Any]) -> None:
    del state["momentum_buffer"]


@pytest.mark.parametrize("taken_away", [without_buffer, without_key, dict.clear])
def test_momentum_begins_anew_where_its_buffer_is_taken_away(taken_away: Any) -> None:
    def restarted(library: Any) -> list[torch.Tensor]:
        optimizer = library.SGD(parameters(SHAPES), lr=0.1, momentum=0.9, dampening=0.5)
        params: list[torch.Tensor] = optimizer.param_groups[0]["params"]
        for step in range(5):
            if step == 2:
                taken_away(optimizer.state[params[0]])
            train(optimizer, 1, seed=step)
        return [*params, *(optimizer.state[param]["momentum_buffer"] for param in params)]

    torch.testing.assert_close(restarted(opwright.optim), restarted(torch.optim))


@pytest.mark.parametrize(("name", "key"), [("Rprop", "etas"), ("NAdam", "betas")])
def test_a_list_that_changes_in_place_is_seen(name: str, key: str) -> None:
    def changed(library: Any) -> list[torch.Tensor]:
        optimizer = getattr(library, name)(parameters(SHAPES), lr=0.1, **{key: [0.5, 1.2 if name == "Rprop" else 0.9]})
        for _ in range(4):
            optimizer.param_groups[0][key][1] += 0.02
            train(optimizer, 1, seed=3)
        return optimizer.param_groups[0]["params"]

    torch.testing.assert_close(changed(opwright.optim), changed(torch.optim))
