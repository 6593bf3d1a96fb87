"""The distribution function of the normal distribution: where kernels have it, and how exact it is."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.codegen.cpp.loops.normal import with_normal
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Expression, Literal, Load, Local, apply
from opwright.ir.expressions.integer import symbol
from opwright.ir.program import Axis, Kernel, Let, Store
from tests.include.vmath_functions import compile_with_gcc

F32, F64 = DType.FLOAT32, DType.FLOAT64
ROW = symbol("i")
X, INNER = Local("x", F32), Local("inner", F32)
HALF, ONE = Literal(math.sqrt(0.5), F32), Literal(1.0, F32)
CDF = Apply("twice_normal_cdf", (X,), F32)


def written(value: Expression, *lets: Let) -> tuple[list[str], Expression]:
    lets = (Let("x", Load("x", (ROW,), X.dtype)), *lets)
    rewritten = with_normal(Kernel("kernel", (), (Axis("i", symbol("n")),), lets, (Store("y", (ROW,), value),)))
    return [let.name for let in rewritten.lets], rewritten.stores[0].value


def scaled(by: float = math.sqrt(0.5)) -> Expression:
    return apply("multiply", X, Literal(by, F32))


@pytest.mark.parametrize(
    "value",
    [
        apply("add", apply("erf", scaled()), ONE),
        apply("add", ONE, apply("erf", apply("multiply", HALF, X))),
        apply("add", apply("erf", apply("divide", X, Literal(math.sqrt(2), F32))), ONE),
    ],
    ids=["and one", "one and", "divided"],
)
def test_it_is_found(value: Expression) -> None:
    assert written(value) == (["x"], CDF)


def test_it_is_found_by_names() -> None:
    function = Let("inner", apply("erf", Local("u", F32)))
    assert written(apply("add", INNER, ONE), Let("u", scaled()), function) == (["x"], CDF)


def test_an_error_function_that_is_needed_stays() -> None:
    value = apply("multiply", apply("add", INNER, ONE), INNER)
    assert written(value, Let("inner", apply("erf", scaled()))) == (["x", "inner"], apply("multiply", CDF, INNER))


@pytest.mark.parametrize(
    "value",
    [
        apply("add", apply("erf", scaled(0.7)), ONE),
        apply("add", apply("erf", scaled()), Literal(2.0, F32)),
        apply("subtract", ONE, apply("erf", scaled())),
        apply("add", apply("erf", X), ONE),
    ],
)
def test_other_sums_stay(value: Expression) -> None:
    assert written(value) == (["x"], value)


def test_doubles_stay() -> None:
    x = torch.randn(8, dtype=torch.float64)
    operator = Operator(functional.gelu)
    torch.testing.assert_close(operator(x), functional.gelu(x))
    assert "twice_normal_cdf" not in str(operator.source())


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "by hand": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_as_exact_as_before(name: str) -> None:
    function, ends = FUNCTIONS[name], [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, 1e30, -1e30, 20.0, -20.0]
    x = torch.cat([torch.linspace(-9, 9, 200_001), torch.tensor(ends)]).requires_grad_()
    exact = x.detach().double().requires_grad_()
    operator = Operator(function)
    value, truth = operator(x), function(exact)
    assert "twice_normal_cdf(" in str(operator.source())
    torch.testing.assert_close(value.double(), truth, rtol=3e-7, atol=6e-7, equal_nan=True)
    near = abs(x) < 2
    torch.testing.assert_close(value[near].double(), truth[near], rtol=8e-7, atol=0)
    (gradient,), (slope,) = torch.autograd.grad(value.sum(), x), torch.autograd.grad(truth.sum(), exact)
    usual = x.detach().isfinite()
    torch.testing.assert_close(gradient[usual].double(), slope[usual], rtol=0, atol=3e-7)
    assert torch.equal(value.signbit()[-10:-8], torch.tensor([False, True]))


@pytest.mark.parametrize("axes", [-1, 0, (0, 1)])
def test_maxima_are_found_again(axes: int | tuple[int, ...]) -> None:
    """The kernel of the gradient has the function for the value and for the slope."""

    def largest_gelu(x: Tensor) -> Tensor:
        return torch.exp(functional.gelu(x)).amax(axes)

    x = torch.randn(37, 129, requires_grad=True)
    (actual,), (expected,) = (torch.autograd.grad(f(x).sum(), x) for f in (Operator(largest_gelu), largest_gelu))
    torch.testing.assert_close(actual, expected)


def test_compilers_compute_one_exponential(tmp_path: object) -> None:
    loop = (
        '#include "opwright/vmath.h"\nnamespace opwright {{ void loop(const float* x, float* y, long count) {{\n'
        '_Pragma("omp simd") for (long i = 0; i < count; ++i) y[i] = {}; }} }}\n'
    )
    pair = "twice_normal_cdf(x[i]) + x[i] * exp(x[i] * x[i] * -0.5f)"
    lines = []
    for value in ("twice_normal_cdf(x[i])", pair):
        source, made = f"{tmp_path}/loop.cpp", f"{tmp_path}/loop.s"
        with open(source, "w") as file:
            file.write(loop.format(value))
        compile_with_gcc("native", "-O2", "-S", source, "-o", made)
        with open(made) as file:
            lines.append(sum("\tv" in line for line in file))
    assert lines[1] < 1.25 * lines[0]
