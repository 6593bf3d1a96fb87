"""Twenty steps against torch.optim, over the configurations of its own test table."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch

import opwright.optim
from tests.optim.trained import MATRICES, SHAPES, trained
from tests.suite.nights import mostly_at_night
from tests.torch_tables import stand_in_for_expecttest

TWO_RANKS, MATRIX = ((7, 5), ()), ((7, 5),)  # a kernel is derived for each rank
BY_DAY = [
    ("SGD", "tensor lr", torch.bfloat16, TWO_RANKS),
    ("NAdam", "default", torch.float64, MATRIX),
    ("RAdam", "default", torch.float32, MATRIX),
    ("ASGD", "default", torch.float64, TWO_RANKS),
]
SKIPPED_OPTIONS = ("foreach", "fused", "capturable", "differentiable")  # how torch runs it
# What torch's own implementations of one optimizer differ by, times a few: they round in other places. Adafactor's
# clipping and a learning rate in a float32 tensor are computed in float32 by torch.
TOLERANCES = {torch.float32: 2e-5, torch.float64: 1e-9, torch.bfloat16: 0.06}
_ROUNDED_BY_TORCH = 1e-5
_ITERATION_IN_BFLOAT16 = 2e-3  # of Muon: kernels round products before they are added, torch rounds sums


@cache
def configurations() -> dict[tuple[str, str], tuple[type[torch.optim.Optimizer], dict[str, Any]]]:
    """By optimizer and description."""
    stand_in_for_expecttest()
    from torch.testing._internal.common_optimizers import optim_db

    return {
        (info.optim_cls.__name__, given.desc): (info.optim_cls, dict(given.kwargs))
        for info in optim_db
        if hasattr(opwright.optim, info.optim_cls.__name__)
        for given in info.optim_inputs_func(device="cpu")
        if not any(given.kwargs.get(option) for option in SKIPPED_OPTIONS)
    }


def cases() -> Iterator[tuple[str, str, torch.dtype, Any]]:
    yield from BY_DAY
    for name, description in configurations():
        for dtype in TOLERANCES:
            case = (name, description, dtype, MATRICES if name == "Muon" else SHAPES)
            if case not in BY_DAY:
                yield case


@pytest.mark.parametrize(("name", "description", "dtype", "shapes"), mostly_at_night(cases(), BY_DAY))
def test_trajectories_are_those_of_torch(name: str, description: str, dtype: torch.dtype, shapes: Any) -> None:
    theirs, hyper = configurations()[name, description]
    hyper = {key: value for key, value in hyper.items() if key not in SKIPPED_OPTIONS}
    made, right = (
        trained(cls, 20, shapes, dtype, **copy.deepcopy(hyper)) for cls in (getattr(opwright.optim, name), theirs)
    )
    tolerance = TOLERANCES[dtype]
    if name == "Adafactor" or any(isinstance(value, torch.Tensor) for value in hyper.values()):
        tolerance = max(tolerance, _ROUNDED_BY_TORCH)
    if name == "Muon":
        tolerance = max(tolerance, _ITERATION_IN_BFLOAT16)
    for ours, other in zip(made, right, strict=True):
        torch.testing.assert_close(ours, other, rtol=tolerance, atol=tolerance)


def test_the_comparison_sees_another_rate() -> None:
    ours = trained(opwright.optim.AdamW, lr=1.1e-3)
    theirs = trained(torch.optim.AdamW, lr=1e-3)
    assert any((a - b).abs().max() > TOLERANCES[torch.float32] * 10 for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Rprop"])
def test_complex_parameters(name: str) -> None:
    ours, theirs = (
        trained(cls, 6, ((5, 3), (4,)), torch.complex64)
        for cls in (getattr(opwright.optim, name), getattr(torch.optim, name))
    )
    torch.testing.assert_close(ours, theirs)


TINY, NOT_A_NUMBER, INFINITE = 1e-9, float("nan"), float("inf")
EXTREMES = [
    ("Adafactor", {}, (6,), NOT_A_NUMBER),
    ("Adafactor", {}, (3, 4), NOT_A_NUMBER),
    ("Adafactor", {"eps": (0.0, 1e-3)}, (3, 4), TINY),
    ("Adafactor", {"eps": (0.0, 0.0)}, (6,), TINY),
    ("Adafactor", {"d": 2.0}, (6,), INFINITE),
    *((name, {}, (6,), extreme) for name in ("Adamax", "RMSprop", "Rprop") for extreme in (NOT_A_NUMBER, INFINITE)),
    *((name, {}, (6,), INFINITE) for name in ("ASGD", "SGD", "Adagrad", "Adadelta")),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, (6,), INFINITE),
    ("ASGD", {"t0": 1.0, "weight_decay": 0.1}, (6,), INFINITE),
    *((name, {"betas": (0.5, 0.9)}, (6,), INFINITE) for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam")),
    ("RMSprop", {"alpha": 0.25, "centered": True}, (6,), INFINITE),
    ("Muon", {"momentum": 0.25}, (3, 4), INFINITE),
]


@pytest.mark.parametrize("in_param", mostly_at_night([False, True], 1))
@pytest.mark.parametrize(("name", "hyper", "shape", "extreme"), mostly_at_night(EXTREMES, EXTREMES[::2]))
def test_extremes(name: str, hyper: dict[str, Any], shape: tuple[int, ...], extreme: float, in_param: bool) -> None:
    """Gradients that are tiny, or of which one element is not finite; or such an element of the parameter."""

    def stepped(library: Any) -> dict[str, torch.Tensor]:
        param = torch.linspace(1, 2, 6 if len(shape) == 1 else 12).reshape(shape).requires_grad_()
        optimizer = getattr(library, name)([param], lr=0.1, **hyper)
        found = {}
        for step in range(2):
            param.grad = torch.full(shape, TINY if extreme == TINY else 0.5)
            (param.data if in_param else param.grad).view(-1)[1] = extreme
            optimizer.step()
            state = {"param": param.detach(), **optimizer.state[param]}
            found |= {f"{key} {step}": value.clone() for key, value in state.items()}
        return found

    ours, theirs = stepped(opwright.optim), stepped(torch.optim)
    near = {"rtol": _ITERATION_IN_BFLOAT16, "atol": _ITERATION_IN_BFLOAT16} if name == "Muon" else {}
    torch.testing.assert_close({key: ours[key] for key in theirs}, theirs, equal_nan=True, **near)
