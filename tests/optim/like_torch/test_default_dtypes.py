"""Other default dtypes than float32: states and numbers are those of torch.optim."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import opwright.optim
from opwright.optim.serving import buckets, plan
from tests.optim.trained import MATRICES, parameters, train
from tests.suite.nights import mostly_at_night

DTYPES = (torch.float64, torch.bfloat16, torch.float16)
HYPER: dict[str, dict[str, Any]] = {
    "ASGD": {"t0": 1.0, "lambd": 0.1},
    "NAdam": {},
    "Adam": {"amsgrad": True},
    "SGD": {"momentum": 0.9},
    "RAdam": {},
    "Adagrad": {},
    "Adadelta": {},
    "Adamax": {},
    "RMSprop": {"momentum": 0.5},
    "Rprop": {},
    "Adafactor": {},
    "Muon": {},
}  # fmt: skip
BY_DAY = ("NAdam", "Adam")
SHAPES = ((3, 4), ())


@pytest.fixture(params=DTYPES, ids=str)
def default(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(torch.float32)


def refuse_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever no kernel serves raises."""

    def refuse(definition: Any, *_: Any) -> None:
        raise AssertionError(f"no kernel served {definition.name}")

    for module in (buckets, plan):
        monkeypatch.setattr(module, "run_composed", refuse)


def states_of(optimizer: Any) -> list[dict[str, torch.Tensor]]:
    return [optimizer.state[param] for param in optimizer.param_groups[0]["params"]]


@pytest.mark.parametrize("own", mostly_at_night([torch.float32, torch.float64], by_day=1), ids=str)
@pytest.mark.parametrize("name", mostly_at_night(HYPER, BY_DAY))
def test_steps_are_those_of_torch(
    name: str, own: torch.dtype, default: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    if default is torch.float64:
        refuse_definitions(monkeypatch)
    found = []
    for library in (opwright.optim, torch.optim):
        optimizer = getattr(library, name)(
            parameters(MATRICES if name == "Muon" else SHAPES, own), lr=0.1, **HYPER[name]
        )
        train(optimizer, 5)
        found.append(optimizer)
    ours, theirs = found
    tolerance = 1e-2 if name == "Muon" else 2e-6 if own is torch.float32 or default is not torch.float64 else 1e-12
    for mine, other in zip(states_of(ours), states_of(theirs), strict=True):
        for key, value in other.items():
            torch.testing.assert_close(mine[key], value, rtol=tolerance, atol=tolerance)
    params, right = (each.param_groups[0]["params"] for each in found)
    torch.testing.assert_close(params, right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["ASGD", "AdamW"])
def test_states_of_another_default_dtype_go_on(name: str) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        begun = getattr(torch.optim, name)(parameters(SHAPES), **HYPER.get(name, {}))
        train(begun, 2)
    finally:
        torch.set_default_dtype(torch.float32)
    found = []
    for library in (opwright.optim, torch.optim):
        optimizer = getattr(library, name)(
            [p.detach().clone().requires_grad_() for p in begun.param_groups[0]["params"]]
        )
        optimizer.load_state_dict(copy.deepcopy(begun.state_dict()))
        found.append((train(optimizer, 3), [state["step"] for state in states_of(optimizer)]))
    torch.testing.assert_close(*found)
