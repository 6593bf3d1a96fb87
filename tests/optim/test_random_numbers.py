"""Random schedules: definitions that compute numbers of `step` and hyper-parameters as users do, against themselves."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import opwright
from opwright.optim.base import DerivedOptimizer
from opwright.toolchain.modules import module_of_text
from tests.optim.test_cuda import on_host
from tests.suite.nights import mostly_at_night

SEEDS = range(60)
FUNCTIONS = (
    "math.sqrt(abs({0}))", "math.exp(-abs({0}))", "math.log(1 + abs({0}))", "math.log2(2 + abs({0}))", "math.cos({0})",
    "math.sin({0})", "math.tan({0} / (3 + abs({0})))", "math.tanh({0})", "math.pow(0.5 + abs({0}), 0.7)", "abs({0})",
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (1 + abs({1}))", "min({0}, {1})", "max({0}, {1})",
    "(1 - 0.9**step) * {0}", "{0} % 0.75",
)  # fmt: skip
BRANCHES = ("{0} if step % 3 == 0 else {1}", "{0} if step > 4 else {1}", "{0} if math.cos({0}) > 0.4 else {1}")


def definition_of(seed: int) -> str:
    """The text of a definition."""
    draw = random.Random(seed)
    numbers, lines = ["step", "lr", "decay", "0.3"], []
    for count in range(draw.randint(2, 6)):
        first = draw.choice(numbers[:3] if count == 0 else numbers[-2:])
        lines.append(f"number_{count} = {draw.choice(FUNCTIONS).format(first, draw.choice(numbers))}")
        numbers.append(f"number_{count}")
    if seed % 2:
        lines.append(f"number_of_a_branch = {draw.choice(BRANCHES).format(numbers[-1], numbers[-2])}")
        numbers.append("number_of_a_branch")
    lines.append(f"average = average + math.tanh({numbers[-1]}) * grad")
    lines.append(f"return param - math.cos({' + '.join(numbers[4:])}) * average, average")
    body = "\n    ".join(lines)
    return f"import math\n\ndef Scheduled(param, grad, average, step, *, lr=0.1, decay=0.01):\n    {body}\n"


@pytest.mark.usefixtures("no_definition")
@pytest.mark.parametrize("seed", mostly_at_night(SEEDS, (6,)))
def test_steps_are_those_of_the_definition(seed: int) -> None:
    definition = scheduled(definition_of(seed))
    assert_steps_are_those_of(definition, opwright.optimizer(state=("average",))(definition))


def test_the_comparison_sees_another_function() -> None:
    text = definition_of(6)
    other = text.replace("math.cos(", "math.sin(")
    assert other != text
    with pytest.raises(AssertionError, match="not close"):
        assert_steps_are_those_of(scheduled(text), opwright.optimizer(state=("average",))(scheduled(other)))


def scheduled(text: str) -> Callable[..., Any]:
    """The function of a text."""
    found: Callable[..., Any] = module_of_text(f"<{text}>", text).Scheduled
    return found


def assert_steps_are_those_of(definition: Callable[..., Any], made: type[DerivedOptimizer]) -> None:
    """Compare kernels in C++ and in CUDA with a definition, while the rate changes."""
    for cls in (made, on_host(made)):
        param = torch.linspace(-2, 2, 17, dtype=torch.float64).requires_grad_()
        exact, average = param.detach().clone(), torch.zeros(17, dtype=torch.float64)
        optimizer = cls([param], lr=0.2)
        for step in range(1, 13):
            rate = optimizer.param_groups[0]["lr"] = 0.2 / step
            param.grad = torch.cos(step * exact)
            exact, average = definition(exact, param.grad, average, float(step), lr=rate)
            optimizer.step()
            torch.testing.assert_close(param.detach(), exact, rtol=1e-11, atol=1e-11)
