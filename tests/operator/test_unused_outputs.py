"""Outputs that nobody uses add nothing to gradients, though zero times an infinite derivative is NaN.

Each case is a random function of several outputs, most of which have infinite derivatives at zero, where it is called.
"""

import itertools
import random as numbers
import sys
from dataclasses import replace

import pytest
import torch

import opwright
from opwright.binding.variants.states import OutsideChanged
from opwright.operators.base import BaseOperator
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

SINGULAR = (
    "{0}.sqrt()",
    "{0}.abs().log()",
    "1 / {0}",
    "{0}.norm()",
    "{0}.abs().pow(0.5)",
    "{0} / {1}",
    "{0}.sqrt() * {1}",
)
SMOOTH = ("{0} * 2", "{0}.sin()", "{0} + {1}", "{0} * {1}", "({0} * 3).sum()", "{0} > {1}", "{0}.cos() * {1}.exp()")


def function_of(seed):
    """A function of two tensors with three or four outputs, of which some are singular at zero."""
    choose = numbers.Random(seed)
    outputs = [choose.choice(SINGULAR), choose.choice(SMOOTH), choose.choice(SINGULAR + SMOOTH), choose.choice(SMOOTH)]
    outputs = outputs[: choose.choice((3, 4))]
    choose.shuffle(outputs)
    spelled = [each.format(*choose.sample(("x", "y"), 2)) for each in outputs]
    namespace = {}
    exec(f"def singular_{seed}(x, y):\n    z = x + y\n    return {', '.join(spelled)}", namespace)
    function = namespace[f"singular_{seed}"]
    function.__annotations__ = {"x": torch.Tensor, "y": torch.Tensor}
    return function


def gradients(function, used, *, order=1, at=0.0):
    leaves = [torch.full((4,), at, requires_grad=True) for _ in range(2)]
    outputs = function(*leaves)
    total = sum((outputs[position] * (position + 1)).sum() for position in used)
    found = torch.autograd.grad(total, leaves, create_graph=order > 1, allow_unused=True)
    if order > 1:
        flowing = [gradient for gradient in found if gradient is not None and gradient.requires_grad]
        if flowing:
            total = sum(gradient.sin().sum() for gradient in flowing)
            found += torch.autograd.grad(total, leaves, allow_unused=True)
    return found


def assert_alike(found, expected, *, none=True):
    for gradient, wanted in zip(found, expected, strict=True):
        if none:
            assert (gradient is None) == (wanted is None)
        if gradient is not None:
            other = torch.zeros_like(gradient) if wanted is None else wanted
            torch.testing.assert_close(gradient, other, equal_nan=True)


@pytest.mark.parametrize("seed", mostly_at_night(range(24), by_day=1))
def test_an_output_that_is_not_used_adds_nothing(seed):
    function = function_of(seed)
    operator = opwright.operator(function)
    flowing = [p for p, output in enumerate(function(torch.ones(4), torch.ones(4))) if output.is_floating_point()]
    for count in range(1, len(flowing) + 1):
        for used in itertools.combinations(flowing, count):
            for order in (1, 2):
                # what is zero in the second order may be None in eager, whose graph has only what was used
                assert_alike(gradients(operator, used, order=order)[:2], gradients(function, used, order=order)[:2])
                assert_alike(
                    gradients(operator, used, order=order), gradients(function, used, order=order), none=order == 1
                )
    assert operator.last_rung == "cpp"


@opwright.operator
def parted(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sqrt() * y, x * 2


@pytest.mark.parametrize("rung", ["cpp", "function"])
@pytest.mark.parametrize("order", [1, 2])
def test_each_rung_takes_the_outputs_that_are_used(rung, order):
    for used in ((0,), (1,), (0, 1)):
        expected = gradients(parted.reference, used, order=order)
        assert_alike(gradients(parted.on(rung), used, order=order), expected, none=rung == "cpp" and order == 1)


def test_an_argument_of_unused_outputs_alone_keeps_no_gradient():
    """An optimizer skips a parameter whose gradient is None, and decays one whose gradient is zero."""
    x, y = (torch.ones(4, requires_grad=True) for _ in range(2))
    parted(x, y)[1].sum().backward()
    assert y.grad is None
    torch.testing.assert_close(x.grad, torch.full((4,), 2.0))


TRANSFORMS = {
    "grad": torch.func.grad(lambda x: parted(x, x)[1].sum()),
    "vmap of grad": torch.func.vmap(torch.func.grad(lambda x: parted(x, x)[1].sum())),
    "grad that is recorded": opwright.func.grad(lambda x: parted(x, x)[1].sum()),
    "jacrev": torch.func.jacrev(lambda x: parted(x, x)[1]),
}


@pytest.mark.parametrize("transform", mostly_at_night(TRANSFORMS, by_day=3))
def test_transforms_of_what_is_used(transform):
    found = TRANSFORMS[transform](torch.zeros(3, 4))
    assert found.isfinite().all()
    assert found.sum() == 24


def test_compiled():
    x, y = torch.zeros(4, requires_grad=True), torch.ones(4, requires_grad=True)
    compiled = torch.compile(lambda x, y: parted(x, y)[1].sum(), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(x, y), x)[0], torch.full((4,), 2.0))


FACTOR = 3.0


def test_a_compiled_graph_does_not_keep_where_gradients_flowed(monkeypatch):
    def depends(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y if FACTOR > 3 else x * 2 + y.detach()

    operator = opwright.operator(depends, name="tests::depends_on_a_factor")
    compiled = torch.compile(lambda x, y: operator(x, y), backend="aot_eager", fullgraph=True)
    for factor in (3.0, 5.0, 3.0):
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", factor)
        x, y = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
        found = torch.autograd.grad(compiled(x, y).sum(), [x, y])
        torch.testing.assert_close(found, (y, x) if factor > 3 else (torch.full((4,), 2.0), torch.zeros(4)))


def several(x, y):
    return x.sqrt() * y, x * FACTOR, y.exp()


@pytest.mark.parametrize("at", [0.5, 0.0])
@pytest.mark.parametrize("tape", ["now", "off"])
def test_what_changed_since_the_call_does_not_change_its_gradients(at, tape, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    operator = BaseOperator(several, settings=replace(quiet_settings(optimized=False), tape=tape))
    expected = gradients(several, [1], at=at)

    def found(*used, order=1):
        leaves = [torch.full((4,), at, requires_grad=True) for _ in range(2)]
        outputs = operator(*leaves)
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5.0)
        try:
            total = sum((outputs[position] * (position + 1)).sum() for position in used)
            return torch.autograd.grad(total, leaves, create_graph=order > 1, allow_unused=True)
        finally:
            monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)

    assert_alike(gradients(operator, [0, 1, 2], at=at), gradients(several, [0, 1, 2], at=at))
    if at:
        assert_alike(found(1), expected)
    else:  # zero times an infinite derivative
        with pytest.raises(OutsideChanged, match="FACTOR"):
            found(1)
    with pytest.raises(OutsideChanged, match="FACTOR"):
        found(1, order=2)


def drawing(x):
    return torch.nn.functional.dropout(x, 0.5, True) * FACTOR, x.exp()


@pytest.mark.parametrize("tape", ["now", "off"])
def test_numbers_that_were_drawn_before_a_change_are_drawn_again(tape, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    operator = BaseOperator(drawing, settings=replace(quiet_settings(optimized=False), tape=tape))
    found = []
    for function in (drawing, operator, operator):
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
        x = torch.linspace(0.5, 1.0, 64).requires_grad_()
        torch.manual_seed(5)
        y = function(x)[0].sum()
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5.0)
        torch.rand(3)  # others draw meanwhile
        found.append((torch.autograd.grad(y, x)[0], torch.rand(1)))
    assert operator.last_rung == "cpp"
    for gradient, drawn in found[1:]:
        assert torch.equal(gradient, found[0][0])
        assert torch.equal(drawn, found[0][1])
