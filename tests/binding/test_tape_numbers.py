"""Numbers on the hot path: which are told apart, which kernels are given, and which are none of its business."""

import enum
from dataclasses import replace

import numpy
import pytest
import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from opwright.api.operator import Operator
from opwright.binding.native import native
from opwright.settings import Settings
from tests.binding.conftest import Anybody
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.falls_back

X = {dtype: torch.arange(1, 7).reshape(2, 3).to(dtype) for dtype in (torch.float32, torch.int64)}


class Two(enum.IntEnum):
    TWO = 2


class Half(float):
    pass


def symbolic():
    return ShapeEnv().create_unbacked_symint()


def times(x: Tensor, k: float = 2.0) -> Tensor:
    return x * k


def over(x: Tensor, k: float = 2.0) -> Tensor:
    return x / k


def shifted(x: Tensor, k: int = 1) -> Tensor:
    return x + k


def turned(x: Tensor, k: bool = True) -> Tensor:
    return x * 2 if k else x + 0.5


def branching(x: Tensor, k: float = 1.0) -> Tensor:
    return x * k if k > 0.5 else x - k


def sized(x: Tensor, k: int = 1) -> Tensor:
    return x.repeat(k, 1).sin()


NAN = float("nan")
VALUES = {
    times: [2.0, 2, True, 1, 1.0, numpy.float64(2.0), numpy.float32(2.0), Half(2.0), 3.0, 2.0, torch.tensor(2.0), None],
    over: [0.0, -0.0, 0, False, NAN, -NAN, float("inf"), 1e39, -1e39, 5e-324, 2.0, 0.0, -0.0, "2"],
    shifted: [1, True, 1.0, 2**62, 2**63, -(2**63), 10**30, Two.TWO, 2, numpy.int64(2), torch.tensor(2), 1],
    turned: [True, False, 1, 0, 1.0, 0.0, None, "", numpy.True_, torch.tensor(True), True],
    branching: [1.0, 2.0, 0.5, 0.25, -3.0, 0.75, 1, 0, NAN, True, 0.5, 7.0],
    sized: [1, 2, 3, True, 2, 2.0, 1, 0, -1],
}


@pytest.fixture(scope="module")
def make():
    native.equip(Anybody(), Settings.from_environment())
    settings = replace(Settings.from_environment(), notify=False, strict=False)
    return lambda function: [Operator(function, settings=replace(settings, tape=tape)) for tape in ("now", "off")]


def outcome(operator, x, k):
    try:
        result = operator(x, k)
    except Exception as error:
        return type(error), str(error)
    if not isinstance(result, Tensor):
        return type(result), repr(result)
    return operator.last_rung, result.dtype, result.shape, result.numpy().tobytes()


CASES = [(function, dtype) for function in VALUES for dtype in X]
BY_DAY = [*CASES[:10:4], *CASES[3::4]][:-1]  # each function with one dtype; of sizes there are tests below


@pytest.mark.filterwarnings("ignore:.*divide by zero")
@pytest.mark.parametrize(("function", "dtype"), mostly_at_night(CASES, BY_DAY))
def test_every_value_gives_what_it_gives_in_python(make, function, dtype):
    ours, python = make(function)
    for k in VALUES[function] * 2:
        expected = outcome(python, X[dtype], k)
        for _ in range(2):
            assert outcome(ours, X[dtype], k) == expected, repr(k)


def test_a_symbolic_int_is_what_the_reference_makes_of_it(make):
    ours, python = make(shifted)
    for k in (1, 2, 3):
        ours(X[torch.int64], k)
    assert outcome(ours, X[torch.int64], symbolic()) == outcome(python, X[torch.int64], symbolic())


def playing(operator, *values):
    for k in values:
        operator(X[torch.float32], k)
    return operator._variants.now().play


def test_a_constant_is_played_until_it_changes_and_then_any_number_is(make):
    play = playing(make(times)[0], 2.0)
    assert play(X[torch.float32], 2.0) is not NotImplemented
    assert play(X[torch.float32]) is not NotImplemented  # its default
    assert play(X[torch.float32], 3.0) is NotImplemented
    play = playing(make(times)[0], 2.0, 3.0)
    for k in (2.0, 3.0, 4.5, -0.0, 1e-300):
        assert torch.equal(play(X[torch.float32], k), X[torch.float32] * k)
    for k in (NAN, float("inf"), 1e39, 2, True, None, numpy.float64(4.5), Half(4.5), torch.tensor(4.5)):
        assert play(X[torch.float32], k) is NotImplemented


def test_numbers_that_kernels_are_written_for_stay_constants(make):
    play = playing(make(sized)[0], 1, 2)
    assert play(X[torch.float32], 2).shape == (4, 3)
    assert play(X[torch.float32], 3) is NotImplemented


def test_a_guard_of_a_number_sends_it_to_its_own_kernel(make):
    play = playing(make(branching)[0], 1.0, 2.0, -1.0)
    assert torch.equal(play(X[torch.float32], 3.0), X[torch.float32] * 3.0)
    assert torch.equal(play(X[torch.float32], -2.0), X[torch.float32] + 2.0)


def test_second_derivatives_know_constants_and_numbers_that_change(make):
    def powered(x: Tensor, k: float = 2.0, *, flag: bool = True) -> Tensor:
        return (x * k).sin() if flag else (x * k).cos()

    ours, _ = make(powered)
    x = torch.linspace(-1, 1, 6, dtype=torch.float64, requires_grad=True)
    for k, flag in ((2.0, True), (3.0, True), (4.0, False), (3.0, False)):
        for _ in range(2):
            found, expected = ([], [])
            for function, derivatives in ((ours, found), (powered, expected)):
                (first,) = torch.autograd.grad(function(x, k, flag=flag).sum(), x, create_graph=True)
                derivatives += [first.detach(), *torch.autograd.grad(first.square().sum(), x)]
            torch.testing.assert_close(found, expected)
