"""Steps that differentiate inside are derived whole: examples/steps.py gives by kernels what it gives in eager."""

import importlib.util
from pathlib import Path

import pytest
import torch

from tests.func.functions import random
from tests.suite.nights import mostly_at_night

PATH = Path(__file__).parents[2] / "examples" / "steps.py"


@pytest.fixture(scope="module")
def steps():
    spec = importlib.util.spec_from_file_location("steps", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ARGUMENTS = {
    "pinn_step": (1, (random(6, 1),)),
    "force_matching": (1, (random(5, 3), random(5, 3, seed=1))),
    "gradient_penalty": (3, (random(6, 3), random(6, 3, seed=1), random(6, 1, seed=2).sigmoid())),
    "clipped_gradients": (3, (random(6, 3), random(6, seed=1))),
}


@pytest.mark.parametrize("name", mostly_at_night(ARGUMENTS, by_day=1))
def test_a_step_is_one_program(steps, name):
    inputs, args = ARGUMENTS[name]
    step, weights = getattr(steps, name), steps.weights_of(inputs, 8, torch.float64)
    if name == "gradient_penalty":  # it requires a gradient in eager, whatever its arguments do
        weights = {name: weight.requires_grad_() for name, weight in weights.items()}
    torch.testing.assert_close(step(weights, *args), step.reference(weights, *args))
    assert step.last_rung == "cpp"


def test_a_penalty_is_differentiable(steps):
    inputs, args = ARGUMENTS["gradient_penalty"]
    weights = {name: w.requires_grad_() for name, w in steps.weights_of(inputs, 8, torch.float64).items()}
    found, expected = (
        torch.autograd.grad(of(weights, *args), [*weights.values()], allow_unused=True)
        for of in (steps.gradient_penalty, steps.gradient_penalty.reference)
    )
    torch.testing.assert_close(found, expected)
