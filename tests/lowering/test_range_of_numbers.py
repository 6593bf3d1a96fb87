"""Numbers that a dtype does not hold: torch raises where it converts them, and so does an operator."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.operator.against_eager import variants
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.built_together,
    pytest.mark.falls_back,  # torch raises, or does what kernels do not
]

X = Parameter("x", Kind.TENSOR, False)
BEYOND = {torch.uint8: 300, torch.int8: 300, torch.int32: 2**31, torch.float16: 65520.0, torch.float32: 1e39}
AT_NIGHT = (torch.int8, torch.int32, torch.float32)

CONVERTED = {
    "clamp, above": lambda x, n: torch.clamp(x, max=n) + x,
    "clamp, below": lambda x, n: torch.clamp(x, min=-n) + x,
    "clamp, in range": lambda x, n: torch.clamp(x, 1, 50) + x,
    "masked_fill": lambda x, n: x.masked_fill(x > 2, n) + x,
    "where": lambda x, n: torch.where(x > 2, x, n) + x,
    "full_like": lambda x, n: torch.full_like(x, n) + x,
    "fill": lambda x, n: torch.fill(x, n) + x,
    "pad": lambda x, n: torch.constant_pad_nd(x, (1, 1), n) * 2,
    "threshold": lambda x, n: torch.threshold(x, 2, n) + x,
    "index_fill": lambda x, n: x.index_fill(0, torch.tensor([1]), n) + x,
    "alpha": lambda x, n: torch.add(x, x, alpha=n),
    "sum": lambda x, n: x + n,
    "product": lambda x, n: x * n,
    "a weight, in a wider dtype": lambda x, n: torch.lerp(x, x + 1, 65520.0) if x.is_floating_point() else x * 2,
    "comparison": lambda x, n: x > n,
    "a truncated number": lambda x, n: torch.full_like(x, 2.7) + x,
    "truth": lambda x, n: torch.full((3,), n, dtype=torch.bool)[:1] & (x > 2),
}


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except RuntimeError as error:
        return str(error)


def assert_same_outcome(found: Any, expected: Any) -> None:
    if isinstance(expected, str):
        assert found == expected
    else:
        torch.testing.assert_close(found, expected, equal_nan=True)


COMPUTED = {
    "addmm": lambda x, n: torch.addmm(x, x[:, None], x[None], alpha=n),
    "index_add": lambda x, n: x.index_add(0, torch.tensor([0, 1]), x[:2], alpha=n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "addcdiv": lambda x, n: torch.addcdiv(x, x, x + 1, value=n),
    "addr": lambda x, n: torch.addr(x, x, x, alpha=n),
    "addmv": lambda x, n: torch.addmv(x, x[:, None] * x, x, beta=n),
    "celu": lambda x, n: functional.celu(x, n) + x,
    "elu": lambda x, n: functional.elu(x, n) + x,
    "leaky_relu": lambda x, n: functional.leaky_relu(x, n) + x,
    "lerp": lambda x, n: torch.lerp(x, x + 1, n),
    "linspace": lambda x, n: torch.linspace(0, n, 6, dtype=x.dtype) + x,
    "logit": lambda x, n: torch.logit(x, n) + x,
    "power": lambda x, n: x**n,
    "softplus": lambda x, n: functional.softplus(x, n) + x,
    "softplus, a threshold": lambda x, n: functional.softplus(x, 1.0, n) + x,
    "threshold": lambda x, n: torch.threshold(x, n, 2.0) + x,
}


COMPUTED_CASES = list(
    itertools.product(COMPUTED, (torch.float16, torch.float32, torch.bfloat16, torch.float64), (1e5, 1e39))
)
# Of what only doubles hold every third, in the two dtypes in turn.
COMPUTED_BY_DAY = [
    *((name, dtype, 1e5) for name in COMPUTED for dtype in (torch.float16, torch.float32)),
    *((name, torch.float32, 1e39) for name in [*COMPUTED][::6]),
    *((name, torch.float16, 1e39) for name in [*COMPUTED][3::6]),
]


@pytest.mark.parametrize(("name", "dtype", "number"), mostly_at_night(COMPUTED_CASES, COMPUTED_BY_DAY), ids=str)
def test_a_constant_that_is_computed_with_does_as_in_torch(name: str, dtype: torch.dtype, number: float) -> None:
    function = COMPUTED[name]
    x = torch.tensor([0.0, 0.25, 0.5, 1.0, 2.0, 3.0]).to(dtype)
    operator = Operator(lambda x: function(x, number), name="tests::computed", signature=Signature((X,), 1))
    expected = outcome(function, x, number)
    assert_same_outcome(outcome(operator, x), expected)
    if dtype is torch.float64 or (number == 1e5 and dtype is torch.float32):
        assert not isinstance(expected, str)
        assert operator.last_rung == "cpp"


TRUNCATED = {
    "addmm": lambda x, n: torch.addmm(x, x[:, None], x[None], alpha=n),
    "addmv": lambda x, n: torch.addmv(x, x[:, None] * x, x, beta=n),
    "addr": lambda x, n: torch.addr(x, x, x, alpha=n),
    "linspace": lambda x, n: torch.linspace(0, n, 6, dtype=x.dtype) + x,
    "linspace to a tensor": lambda x, n: torch.linspace(0, x[2] * n, 6, dtype=x.dtype) + x,
    "threshold": lambda x, n: torch.threshold(x, n, 9) + x,
}


@pytest.mark.parametrize("number", [2.5, math.inf])
@pytest.mark.parametrize("name", TRUNCATED)
def test_a_float_among_integers_does_as_in_torch(name: str, number: float) -> None:
    function = TRUNCATED[name]
    operator = Operator(lambda x: function(x, number), name="tests::truncated", signature=Signature((X,), 1))
    x = torch.tensor([0, 1, 2, 3, 4, 5])
    assert_same_outcome(outcome(operator, x), outcome(function, x, number))


@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=[pytest.mark.nightly] * (d in AT_NIGHT)) for d in BEYOND], ids=str
)
@pytest.mark.parametrize("name", CONVERTED)
def test_a_constant_that_a_dtype_does_not_hold_does_as_in_torch(name: str, dtype: torch.dtype) -> None:
    function, number = CONVERTED[name], BEYOND[dtype]
    operator = Operator(lambda x: function(x, number), name="tests::beyond", signature=Signature((X,), 1))
    x = torch.tensor([0, 1, 2, 3, 100, 127]).to(dtype)
    assert_same_outcome(outcome(operator, x), outcome(function, x, number))


CHANGING = {
    "a fill": lambda x, n: torch.full_like(x, n) + x,
    "where it is computed": lambda x, n: torch.full_like(x, n / 2) + x,
    "masked_fill": lambda x, n: x.masked_fill(x > 2, -n) + x,
    "product": lambda x, n: x * n,
}


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (torch.uint8, int),
        (torch.float16, float),
        *(pytest.param(dtype, int, marks=pytest.mark.nightly) for dtype in (torch.int32, torch.float16)),
        *(pytest.param(dtype, float, marks=pytest.mark.nightly) for dtype in (torch.uint8, torch.int32)),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", CHANGING)
def test_a_number_that_changes_is_never_converted_to_what_does_not_hold_it(
    name: str, dtype: torch.dtype, kind: type
) -> None:
    signature = Signature((X, Parameter("n", Kind.CONSTANT, False)), 1)
    operator = Operator(CHANGING[name], name="tests::changing", signature=signature)
    x = torch.tensor([0, 1, 2, 3, 100, 127]).to(dtype)
    for number in map(kind, (5, 7, 9, 300, -4, 2**20, 2**40)):
        assert_same_outcome(outcome(operator, x, number), outcome(CHANGING[name], x, number))


def test_numbers_in_range_do_not_compile_again() -> None:
    signature = Signature((X, Parameter("n", Kind.CONSTANT, False)), 1)
    operator = Operator(CHANGING["masked_fill"], name="tests::changing", signature=signature)
    seen = []
    for number in (1.5, 2.5, -3.0, 30000.0):
        operator(torch.ones(3, dtype=torch.float16), number)
        assert operator.last_rung == "cpp"
        seen.append(variants(operator))
    assert seen[1:] == [seen[1]] * 3  # the first number was a constant


SIZED = {
    "a size": (lambda x: torch.full_like(x, x.shape[0]) + x, torch.uint8),
    "a product of sizes": (lambda x: x.masked_fill(x > 2, x.shape[0] * x.shape[0]) + x, torch.float16),
    "what is small for all sizes": (lambda x: torch.full_like(x, 0.1 / (x.shape[0] - 1)) + x, torch.float16),
    "what is not": (lambda x: torch.full_like(x, x.shape[0] ** 1.5) + x, torch.float16),
}


@pytest.mark.parametrize(("function", "dtype"), SIZED.values(), ids=SIZED)
def test_a_number_made_from_sizes_is_held_or_torch_raises(function: Any, dtype: torch.dtype) -> None:
    operator = Operator(function, name="tests::sized", signature=Signature((X,), 1))
    for size in (3, 200, 300, 2000):
        x = torch.arange(size).to(dtype)
        assert_same_outcome(outcome(operator, x), outcome(function, x))


def test_a_fill_by_a_fraction_of_sizes_has_a_kernel() -> None:
    function, dtype = SIZED["what is small for all sizes"]
    operator = Operator(function, name="tests::sized", signature=Signature((X,), 1))
    operator(torch.arange(9).to(dtype))
    assert operator.last_rung == "cpp"


COMPUTED_WIDER = {
    "a mean": lambda x: x.mean(),
    "a variance": lambda x: x.var(-1, correction=2),
    "a mask": lambda x: torch.where(x > 2, x, -1e9),
    "a factor": lambda x: x * 1e5,
    "a slope": lambda x: torch.nn.functional.leaky_relu(x, 1e5),
    "a size": lambda x: x / (x.shape[0] * x.shape[1]) + x.shape[0] * 300,
}


@pytest.mark.parametrize("function", COMPUTED_WIDER.values(), ids=COMPUTED_WIDER)
def test_what_is_computed_in_a_wider_dtype_has_a_kernel(function: Any) -> None:
    operator = Operator(function, name="tests::wider", signature=Signature((X,), 1))
    for shape in ((300, 300), (3, 4)):
        found = []
        for call in (operator, function):
            x = torch.linspace(-3, 3, math.prod(shape)).reshape(shape).half().requires_grad_()
            result = call(x)
            found.append((result, *torch.autograd.grad(result, x, torch.ones_like(result))))
        torch.testing.assert_close(*found, equal_nan=True)
        assert operator.last_rung == "cpp"
