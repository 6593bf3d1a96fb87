"""Sines, cosines and tangents where angles are near zero, far from it, and both in one row.

Each case is a random function whose angles are products and sums of what it reads, on arguments that are near zero but
for some places: its values and gradients are those of eager, which rounds the angles in the same way.
"""

import random as numbers

import pytest
import torch

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

ANGLES = ("x", "x * a", "x * a + b", "x * 30.0", "torch.where(k, x, b)", "x * torch.arange(x.shape[-1])", "x - b", "-x")
CALLS = (
    "torch.sin({0})",
    "torch.cos({0})",
    "torch.tan({0} * 0.01)",
    "torch.sin({0}) * torch.cos({0})",
    "torch.sin(torch.cos({0}))",
    "x + torch.sin({0}).square() / a",
    "torch.sin({0}) + torch.cos({1})",
    "torch.sinc({0}) * b",
)
ENDS = ("{}", "{} * 2 + b", "({}).sum(-1)", "({}).sum(0)", "({}).mean()", "torch.softmax({}, -1)", "({}).amax(-1) + 1")


def function_of(seed):
    choose = numbers.Random(seed)
    value = choose.choice(CALLS).format(*choose.sample(ANGLES, 2))
    names = {"torch": torch}
    exec(f"def f(x, a, b, k):\n    return {choose.choice(ENDS).format(value)}", names)
    return names["f"], choose


def arguments_of(choose, dtype, shape):
    rows, columns = shape
    x = torch.randn(shape, dtype=dtype) * choose.choice((1, 100))
    for _ in range(choose.choice((0, 0, 1, 3))):  # some far, in one run or several
        far = choose.choice((3e6, -1e7, 1e12, 3e30, float("inf"), float("nan")))
        x[choose.randrange(rows), choose.randrange(columns)] = far
    a, b = torch.rand(columns, dtype=dtype) + 0.5, torch.randn(columns, dtype=dtype)
    return x, a, b, torch.rand(shape) < 0.5


def results_of(f, x, a, b, k, *, gradients):
    if not gradients:
        return [f(x, a, b, k)]
    wanted = [each.detach().clone().requires_grad_() for each in (x, a, b)]
    result = f(*wanted, k)
    found = torch.autograd.grad(result, wanted, torch.ones_like(result), allow_unused=True)
    return [result.detach(), *(each for each in found if each is not None)]


def differs(got, wanted):
    tolerance = {torch.bfloat16: 2e-2, torch.float32: 2e-5, torch.float64: 1e-12}[got.dtype]
    scale = wanted[wanted.isfinite()].abs().amax().item() if wanted.isfinite().any() else 1.0
    return not torch.allclose(got, wanted, tolerance, tolerance * max(scale, 1.0), equal_nan=True)


@pytest.mark.parametrize("seed", mostly_at_night(range(60), by_day=[0]))
def test_values_and_gradients(seed):
    f, choose = function_of(seed)
    operator = Operator(f, name=f"angles_{seed}", settings=quiet_settings())
    torch.manual_seed(seed)
    for dtype in (torch.float32, torch.float64):
        for shape in ((3, 40), (2, 3000), (37, 1)):
            given = arguments_of(choose, dtype, shape)
            if choose.random() < 0.3:
                given = (given[0].t().contiguous().t(), *given[1:])
            for gradients in (False, True):
                wanted = results_of(f, *given, gradients=gradients)
                got = results_of(operator, *given, gradients=gradients)
                for ours, theirs in zip(got, wanted, strict=True):
                    assert not differs(ours, theirs), (dtype, shape, gradients)


COMPLEX_CALLS = (
    "torch.exp({0})",
    "torch.sin({0})",
    "torch.cos({0} * 0.5)",
    "torch.exp({0}) * torch.sin({0})",
    "torch.exp({0} * 0.5) / torch.cos({1})",
    "torch.sin({0}).conj() * torch.cos({1}) + torch.sin({0}.real)",
    "torch.view_as_real(torch.exp({0})).square().sum(-1)",
)
COMPLEX_ANGLES = ("x", "x * a", "x + a", "-x", "x * 1j")


def complex_function(seed):
    choose = numbers.Random(seed)
    value = COMPLEX_CALLS[seed % len(COMPLEX_CALLS)].format(*choose.sample(COMPLEX_ANGLES, 2))
    names = {"torch": torch}
    exec(f"def f(x, a):\n    return {value}", names)
    return names["f"], choose


def near_parts(got, wanted):
    """Where the parts of two results agree to the larger of both parts of a number, or are the same special value."""
    got, wanted = (torch.view_as_real(each) if each.is_complex() else each for each in (got, wanted))
    larger = wanted.abs().nan_to_num(0, 0, 0).amax(-1, keepdim=True)
    return ((got - wanted).abs() <= 1e-5 * larger) | (got == wanted) | (got.isnan() & wanted.isnan())


@pytest.mark.parametrize("seed", mostly_at_night(range(21), by_day=[3]))
def test_complex_values_and_gradients(seed):
    f, choose = complex_function(seed)
    operator = Operator(f, name=f"complex_angles_{seed}", settings=quiet_settings())
    torch.manual_seed(seed)
    for shape in ((3, 40), (2, 3000), (37, 1)):
        for far in ((), (3e6,), (70.0, complex(0, -1e7)), (complex(2, 75), float("inf"), complex(0, float("nan")))):
            x = torch.randn(shape, dtype=torch.cfloat)
            for each in far:
                x[choose.randrange(shape[0]), choose.randrange(shape[1])] = each
            given = (x.requires_grad_(), torch.randn(shape[1], dtype=torch.cfloat, requires_grad=True))
            got, wanted = operator(*given), f(*given)
            exact = f(*(each.detach().to(torch.complex128) for each in given)).to(wanted.dtype)
            close = near_parts(got.detach(), wanted.detach()) | near_parts(got.detach(), exact)
            assert close.all(), (shape, far)
            if not far:
                weight = torch.randn_like(wanted)
                ours, theirs = (torch.autograd.grad(each, given, weight, allow_unused=True) for each in (got, wanted))
                for one, other in zip(ours, theirs, strict=True):
                    assert one is other is None or torch.allclose(one, other, 1e-4, 1e-4)
    assert operator.last_rung == "cpp"


def standardized(x, w):
    return ((x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 0.1).sqrt() * w).sin()


def test_an_angle_may_be_divided_by_a_number_of_its_row():
    operator, x, w = Operator(standardized), torch.randn(4, 3), torch.ones(3)
    jacobian = torch.func.jacrev(lambda function, x: function(x, w).sum(), argnums=1)
    found, expected = jacobian(operator, x), jacobian(standardized, x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
