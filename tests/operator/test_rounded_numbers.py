"""What is computed of numbers that change from call to call, and of sizes, is rounded at every step as in Python."""

import random

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

VALUES = [(1.0, 2.0), (2.0, 3.0), (0.1, 0.3), (1e-20, 7.0), (-0.7, 0.3), (1e17, -3.3), (0.0, 1.0), (-0.0, 0.5)]
_LEAVES = ("a", "b", "n", "0.1", "1.0", "3", "1e16", "0.7", "0.0", "-0.0", "2", "1e-17", "-1.0")
_FORMS = ("({} + {})", "({} - {})", "({} * {})", "({} / (abs({}) + 1.5))", "(-{})", "({} / (-1.5 - abs({})))")


def random_sum(chooser, depth=3):
    """Python's arithmetic of `a`, `b`, a size `n` and literals, as text."""
    if depth == 0 or chooser.random() < 0.15:
        return chooser.choice(_LEAVES)
    return chooser.choice(_FORMS).format(*(random_sum(chooser, depth - 1) for _ in range(2)))


def function_of(*texts):
    """A function that gives x with the sign of each, and times each."""
    returned = ", ".join(f"torch.copysign(x, {text}), x * ({text})" for text in texts)
    names = {"torch": torch, "Tensor": Tensor}
    exec(f"def computed(x: Tensor, a: float, b: float):\n    n = x.shape[0]\n    return {returned}", names)
    return names["computed"]


def differences(function):
    """Arguments for which an operator gives other bits than its function."""
    operator = Operator(function, settings=quiet_settings(optimized=False))
    x = torch.tensor([1.0, -3.3, 1e-3], dtype=torch.float64)
    for a, b in VALUES:
        for result, expected in zip(operator(x, a, b), function(x, a, b), strict=True):
            if not torch.equal(result.view(torch.int64), expected.view(torch.int64)):
                yield a, b, result.tolist(), expected.tolist()


STEPS = [
    "(a + 1.0) - 1.0", "0.1 * (a + b)", "0.1 + a + 0.2", "(a * 0.1) * 10.0", "a + b - b", "a * 0.1 + a * 0.2",
    "a * -0.0", "0.0 - a", "a + 0.0", "sum([a, b])", "n * 0.1 + 1e16 - 1e16", "n * -0.0",
    "2.0 if a + 1.0 > 1.0 else 3.0",
]  # fmt: skip


@pytest.mark.falls_back
@pytest.mark.parametrize(
    "texts",
    mostly_at_night([STEPS[:-1:2], STEPS[1::2], *([text] for text in STEPS)], by_day=[STEPS[:-1:2], STEPS[-1:]]),
)
def test_steps_are_rounded(texts):
    assert not list(differences(function_of(*texts)))


@pytest.mark.falls_back
@pytest.mark.parametrize("seed", mostly_at_night(range(100), by_day=2))
def test_random_arithmetic(seed):
    chooser = random.Random(seed)
    assert not list(differences(function_of(*(random_sum(chooser) for _ in range(3)))))
