"""Random arithmetic of numbers that change, and branches on it: every call is as Python computes it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import opwright
from opwright.toolchain.modules import module_of_text
from tests.suite.nights import mostly_at_night

pytestmark = [pytest.mark.falls_back]  # where Python raises, and after many values

FORMS = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}", "{0} // {1}", "-{0}", "abs({0})", "min({0}, {1})",
    "max({0}, {1})", "{0} ** 2", "abs({0}) ** 0.5", "round({0})", "int({0})", "float({0})", "{0} % 1", "{0} % 3",
    "{0} // 2", "{0} % -0.75", "divmod({0}, {1})[1]", "math.floor({0})", "math.cos({0})", "math.sqrt({0})",
    "math.exp({0} / 10)", "math.log({0})", "math.pow({0}, {1})", "math.tanh({0})",
)  # fmt: skip
CONDITIONS = ("{0} > {1}", "{0} <= 0.4", "{0} == {1}", "{0} != 2", "0.1 < {0} < 2.2", "{0}", "not {0}")
FLOATS = (0.5, 2.5, 0.3, -0.4, 5.9, 1.0, 3.0, -7.25, 0.0, 0.29)
INTEGERS = (2, 3, 0, -5, 1, 7, 4, 2, 10, -1)
MOST = 6  # calls of a program whose kernels are by values


def text_of(seed: int) -> str:
    """The text of a function of a tensor, two floats and an integer."""
    draw = random.Random(seed)
    numbers, lines = ["a", "b", "n"], []
    for count in range(draw.randint(1, 4)):
        first, second = draw.choice(numbers[-3:]), draw.choice([*numbers, "0.3", "3"])
        lines.append(f"number_{count} = {draw.choice(FORMS).format(first, second)}")
        numbers.append(f"number_{count}")
    condition = draw.choice(CONDITIONS).format(numbers[-1], draw.choice(numbers))
    lines.append(f"return x * 2 + {draw.choice(numbers)} if {condition} else x - {draw.choice(numbers)} * x")
    head = "import math\nfrom torch import Tensor\n\ndef computed(x: Tensor, a: float, b: float, n: int) -> Tensor:"
    return "\n    ".join([head, *lines]) + "\n"


@pytest.mark.parametrize("block", mostly_at_night(range(60), by_day=1))
def test_calls_are_as_python_computes_them(block: int) -> None:
    for seed in range(block * 5, block * 5 + 5):
        text = text_of(seed)
        function = module_of_text(f"<numbers {seed}>", text).computed
        operator = opwright.operator(function)
        draw, x = random.Random(seed), torch.tensor([1.5, -0.0, 0.0, 3.0], dtype=torch.float64)
        for _ in range(MOST):
            numbers = draw.choice(FLOATS), draw.choice(FLOATS), draw.choice(INTEGERS)
            found, expected = outcome(operator, x, *numbers), outcome(function, x, *numbers)
            assert type(found) is type(expected), (text, numbers, found, expected)
            if isinstance(expected, torch.Tensor):
                assert torch.signbit(found).equal(torch.signbit(expected)), (text, numbers, found, expected)
                torch.testing.assert_close(found, expected, rtol=1e-15, atol=0, equal_nan=True)


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns or raises."""
    try:
        return function(*arguments)
    except (ArithmeticError, ValueError, TypeError) as error:
        return error


def test_a_remainder_of_a_float_is_none_of_an_integer() -> None:
    @opwright.operator
    def folded(x: torch.Tensor, n: float) -> torch.Tensor:
        return x * 2 if n % 1 > 0.2 else x * 3

    for value in (2.0, 0.3, 5.9, -0.4):
        assert folded(torch.ones(1), value).item() == (2 if value % 1 > 0.2 else 3)
