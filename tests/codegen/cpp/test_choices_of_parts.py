"""Elements of several parts with the flags of users: compilers read them as groups, under masks where choices allow it.

Each case is a random function with choices in it, called on rows of two to four elements, or on complex numbers; its
values and gradients of both orders are those of eager.
"""

import random as numbers

import pytest
import torch

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

CHOICES = (
    "torch.relu({0})",
    "torch.relu({0}).square()",
    "torch.where({0} > {1}, {2}, 0.0)",
    "torch.where({0} > 0, {1} * {2}, {1})",
    "torch.where({0} > 0, {1}, {2})",
    "{0}.masked_fill({1} < 0, 1.5)",
    "torch.nn.functional.leaky_relu({0}, 0.1) * {1}",
    "torch.nn.functional.elu({0}) + {1}",
    "torch.nn.functional.softplus({0}) * {1}",
    "torch.nn.functional.huber_loss({0}, {1}, reduction='none')",
    "{0}.clamp(-0.5, 0.5) * {1}",
    "{0}.clamp(min={1})",
    "torch.maximum({0}, {1}) * {2}",
    "torch.xlogy({0}.abs(), {1}.abs() + 1)",
    "torch.copysign({0}, {1}) * {2}",
    "torch.heaviside({0}.detach(), {1}.detach()) * {2}",
    "torch.sinc({0}) * {1}",
    "torch.atan2({0}, {1} + 3)",
    "torch.logaddexp({0}, {1})",
    "{0}.abs().pow(1.5) * {1}",
    "torch.remainder({0}, 2.0) * {1}",
    "torch.sign({0}) * {1}",
)
AGAIN = (
    "torch.where(c, {0}, 0.0)",
    "torch.where(c, {0} * {1}, 0.0)",
    "torch.where(c, 0.0, {0}) * {1}",
)  # one condition
COMPLEX = (
    "torch.where({0}.real > 0, {1}, {2})",
    "torch.where({0}.real > {1}.real, {1} * {2}, 0.0 * {1})",
    "{0}.masked_fill({1}.imag < 0, 1.5) * {2}",
    "{0} * {1} + {2}.conj()",
    "{0}.sgn() * {1}",
)


def function_of(seed, choices):
    choose = numbers.Random(seed)
    lines, names = [f"    c = x{choose.choice(('.real > 0', '.real <= y.real', '.real > z.real'))}"], ["x", "y", "z"]
    for step in range(choose.choice((2, 3, 4))):
        written = choose.choice(AGAIN if choose.random() < 0.5 else choices)
        lines.append(f"    v{step} = {written.format(*choose.sample(names, 3))}")
        names.append(f"v{step}")
    text = "\n".join(lines)
    namespace = {"torch": torch}
    exec(f"def parts_{seed}(x, y, z):\n{text}\n    return v{len(lines) - 2}", namespace)
    function = namespace[f"parts_{seed}"]
    function.__annotations__ = dict.fromkeys("xyz", torch.Tensor)
    return function, text


def everything(function, leaves):
    leaves = [leaf.clone().requires_grad_() for leaf in leaves]
    output = function(*leaves)
    firsts = torch.autograd.grad(output.abs().square().sum(), leaves, create_graph=True, allow_unused=True)
    found = [output, *[gradient for gradient in firsts if gradient is not None]]
    flowing = [gradient for gradient in found[1:] if gradient.requires_grad]
    if flowing:
        total = sum(gradient.abs().square().sum() for gradient in flowing)
        seconds = torch.autograd.grad(total, leaves, allow_unused=True)
        found += [gradient for gradient in seconds if gradient is not None]
    return [each.detach() for each in found]


@pytest.mark.seconds(60)
@pytest.mark.parametrize("seed", mostly_at_night(range(100), by_day=1))
def test_choices_between_parts(seed):
    is_complex = seed % 5 == 4
    function, text = function_of(seed, COMPLEX if is_complex else CHOICES)
    operator = Operator(function, settings=quiet_settings())
    for rows in (1, 7, 33):
        for parts in (3, 4, 2)[: 1 if rows == 1 else 3]:
            generator = torch.Generator().manual_seed(seed + rows)
            dtype = torch.complex128 if is_complex else torch.float64
            leaves = [torch.randn(rows, parts, dtype=dtype, generator=generator) for _ in range(3)]
            expected, found = everything(function, leaves), everything(operator, leaves)
            torch.testing.assert_close(found, expected, equal_nan=True, msg=lambda told: f"{text}\n{told}")
    assert operator.last_rung == "cpp"


def test_a_condition_that_is_used_twice():
    """GCC 12 took the mask of the first vector of a group for all of them."""

    def squared_relu(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).square()

    operator = Operator(squared_relu, settings=quiet_settings())
    for dtype in (torch.float32, torch.float64):
        x = torch.linspace(-1, 1, 99, dtype=dtype)[torch.randperm(99, generator=torch.Generator().manual_seed(0))]
        torch.testing.assert_close(
            everything(operator, [x.reshape(33, 3)]), everything(squared_relu, [x.reshape(33, 3)])
        )
    assert operator.last_rung == "cpp"
