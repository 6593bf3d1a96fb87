"""Hyper-parameters and parameters that torch.optim refuses are refused, in its words; others are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import opwright
import opwright.optim
from opwright.errors import UpdateRefused

NAN = float("nan")
TENSOR, LONG = torch.tensor(0.5), torch.tensor([0.1, 0.2])
CASES: list[tuple[str, dict[str, Any]]] = [
    ("Muon", {"adjust_lr_fn": "foo"}), ("Muon", {"ns_steps": 100}), ("Muon", {"ns_coefficients": (1.0, 2.0)}),
    ("Muon", {"lr": -1.0}), ("Muon", {"momentum": -1.0}), ("Muon", {"weight_decay": -1.0}),
    ("Adafactor", {"d": 0.5}), ("Adafactor", {"beta2_decay": 0.5}), ("Adafactor", {"eps": (-1.0, 1e-3)}),
    ("Adafactor", {"eps": (None, -1e-3)}), ("Adafactor", {"lr": -1.0}), ("Adafactor", {"weight_decay": -1.0}),
    ("Adadelta", {"rho": 2.0}), ("Adadelta", {"rho": -1.0}), ("Adadelta", {"rho": 1.0}),
    ("Adam", {"betas": (TENSOR, 0.99)}), ("Adam", {"betas": (0, 0.99)}), ("Adam", {"betas": (TENSOR, TENSOR)}),
    ("Adam", {"betas": (1.0, 0.99)}), ("Adam", {"eps": NAN}), ("AdamW", {"betas": (0, 0.99)}),
    ("NAdam", {"betas": (0, 0.99)}), ("NAdam", {"momentum_decay": -1.0}), ("Adamax", {"lr": NAN}),
    ("ASGD", {"alpha": -1.0}), ("ASGD", {"lambd": -1.0}), ("ASGD", {"weight_decay": -1.0}), ("ASGD", {"lr": NAN}),
    ("SGD", {"lr": NAN}), ("SGD", {"lr": -1}), ("SGD", {"momentum": -1.0}), ("SGD", {"weight_decay": -1.0}),
    ("SGD", {"lr": 1j}), ("Adagrad", {"lr": 1j}), ("SGD", {"lr": LONG}), ("RMSprop", {"lr": LONG}),
    ("SGD", {"nesterov": True}), ("Rprop", {"etas": (0.5, 0.9)}), ("RMSprop", {"alpha": -1.0}),
    ("SGD", {"lr": np.array(0.25)}), ("Adagrad", {"lr": np.float32(0.25)}), ("SGD", {"lr": True}),
    ("Adagrad", {"lr_decay": -1.0}), ("Adagrad", {"initial_accumulator_value": -1.0}),
    ("SGD", {"foreach": True}), ("SGD", {"foreach": None, "fused": False, "differentiable": False}),
    ("Adam", {"capturable": False, "foreach": True}), ("Adam", {"fused": True}), ("AdamW", {"fused": True}),
    ("Adam", {"fused": True, "foreach": True}), ("Muon", {"lr": 0.5}),
]  # fmt: skip
NOT_OF_TORCH = [("SGD", {"capturable": True}), ("Muon", {"foreach": True}), ("Adafactor", {"fused": True})]


def outcome(library: Any, name: str, hyper: dict[str, Any], param: torch.Tensor) -> Any:
    """The parameter after two steps, or what was raised."""
    try:
        optimizer = getattr(library, name)([param], **{"lr": 0.1, **hyper})
        for _ in range(2):
            param.grad = torch.full_like(param, 2)
            optimizer.step()
    except (ValueError, TypeError, RuntimeError, ZeroDivisionError) as error:
        return type(error), str(error)
    return param.detach()


@pytest.mark.parametrize(("name", "hyper"), CASES)
def test_the_same_is_refused(name: str, hyper: dict[str, Any]) -> None:
    ours, theirs = (
        outcome(library, name, hyper, torch.ones(4, 4, requires_grad=True)) for library in (opwright.optim, torch.optim)
    )
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, torch.Tensor), ours
        torch.testing.assert_close(ours, theirs, equal_nan=True, rtol=2e-3 if name == "Muon" else 1e-5, atol=1e-5)
    else:
        assert ours == theirs


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
@pytest.mark.parametrize("name", ["Adafactor", "AdamW", "ASGD", "NAdam", "SGD"])
def test_parameters_without_elements(name: str, shape: tuple[int, ...]) -> None:
    """Adafactor divides by their number."""
    ours, theirs = (
        outcome(library, name, {}, torch.ones(shape, requires_grad=True)) for library in (opwright.optim, torch.optim)
    )
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, torch.Tensor), ours
        assert ours.shape == theirs.shape
    else:
        assert ours == theirs


@pytest.mark.parametrize(("name", "hyper"), NOT_OF_TORCH)
def test_what_torch_does_not_take(name: str, hyper: dict[str, Any]) -> None:
    for library in (opwright.optim, torch.optim):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            getattr(library, name)([torch.ones(4, 4, requires_grad=True)], **hyper)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_parameters_of_integers(name: str) -> None:
    param = torch.arange(3)
    refused, _ = outcome(opwright.optim, name, {}, param)
    assert issubclass(refused, RuntimeError)
    assert issubclass(outcome(torch.optim, name, {}, torch.arange(3))[0], RuntimeError)
    assert torch.equal(param, torch.arange(3))


def test_the_implementation_is_kept_in_the_groups() -> None:
    made = opwright.optim.Adam([torch.ones(2, requires_grad=True)], foreach=True, capturable=False)
    assert made.param_groups[0]["foreach"] is True
    torch.optim.Adam([torch.ones(2, requires_grad=True)]).load_state_dict(made.state_dict())


@pytest.mark.parametrize("in_group", [True, False])
def test_differentiable_steps_are_refused(in_group: bool) -> None:
    params, given = [torch.ones(2, requires_grad=True)], {"differentiable": True}
    with pytest.raises(UpdateRefused, match=r"(?s)in place.*SGD\.functional"):
        opwright.optim.SGD([{"params": params, **given}]) if in_group else opwright.optim.SGD(params, **given)


def test_a_definition_may_have_a_hyper_parameter_of_that_name() -> None:
    @opwright.optimizer()
    def SGD(param: Any, grad: Any, step: Any, *, lr: float = 0.1, fused: float = 2.0) -> Any:
        return (param - lr * fused * grad,)

    param = torch.ones(2, requires_grad=True)
    param.grad = torch.ones(2)
    SGD([param], fused=5.0).step()
    torch.testing.assert_close(param.detach(), torch.full((2,), 0.5))


def test_an_array_that_changes_in_place_is_seen() -> None:
    rate = np.array(0.25)
    param = torch.ones(2, requires_grad=True)
    optimizer = opwright.optim.SGD([param], lr=rate)
    for _ in range(2):
        param.grad = torch.ones(2)
        optimizer.step()
        rate[...] = 0.5
    torch.testing.assert_close(param.detach(), torch.full((2,), 0.25))
