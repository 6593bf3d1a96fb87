"""Functions of which less is needed: where kernels have them, and how exact they are."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.codegen.cpp.loops.narrow import with_narrow_functions
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Expression, Literal, Load, Local, apply
from opwright.ir.expressions.integer import symbol
from opwright.ir.program import Axis, Kernel, Let, Reduce, Store
from tests.include.vmath_functions import compile_with_gcc

F32, F64 = DType.FLOAT32, DType.FLOAT64
ROW = symbol("i")
X, INNER = Local("x", F32), Local("inner", F32)
HALF, ONE = Literal(math.sqrt(0.5), F32), Literal(1.0, F32)
CDF = Apply("twice_normal_cdf", (X,), F32)


def written(value: Expression, *lets: Let) -> tuple[list[str], Expression]:
    lets = (Let("x", Load("x", (ROW,), X.dtype)), *lets)
    rewritten = with_narrow_functions(
        Kernel("kernel", (), (Axis("i", symbol("n")),), lets, (Store("y", (ROW,), value),))
    )
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


def bell(factor: float = -0.5) -> Expression:
    return apply("exp", apply("multiply", apply("multiply", X, X), Literal(factor, F32)))


def test_a_bell_beside_it_is_found() -> None:
    both = apply("add", apply("erf", scaled()), ONE)
    assert written(apply("multiply", both, bell())) == (
        ["x"],
        apply("multiply", CDF, Apply("normal_bell", (X,), F32)),
    )
    square, halved = Local("square", F32), Local("halved", F32)
    lets = (
        Let("square", apply("multiply", X, X)),
        Let("halved", apply("multiply", Literal(-0.5, F32), square)),
        Let("slope", apply("exp", halved)),
    )
    names, value = written(apply("multiply", both, Local("slope", F32)), *lets)
    assert (names, value) == (["x", "slope"], apply("multiply", CDF, Local("slope", F32)))


def test_other_exponentials_stay() -> None:
    both = apply("add", apply("erf", scaled()), ONE)
    for other in (bell(-1.0), apply("exp", X)):
        assert written(apply("multiply", both, other)) == (["x"], apply("multiply", CDF, other))
    assert written(bell()) == (["x"], bell())


def below(value: Expression) -> Apply:
    return apply("log1p", apply("exp", apply("negate", value)))


def test_exponentials_of_at_most_zero_are_found() -> None:
    for size in (apply("abs", X), apply("multiply", X, X)):
        power = Apply("exp_to_one", (apply("negate", size),), F32)
        assert written(below(size).operands[0]) == (["x"], power)
        assert written(below(size)) == (["x"], Apply("log1p_to_one", (power,), F32))
    power = Local("power", F32)
    lets = Let("size", apply("abs", X)), Let("power", apply("exp", apply("negate", Local("size", F32))))
    assert written(apply("log1p", power), *lets)[1] == Apply("log1p_to_one", (power,), F32)


@pytest.mark.parametrize(
    ("function", "reduced", "found"), [("maximum", "x", True), ("maximum", "y", False), ("sum", "x", False)]
)
def test_the_largest_number_of_a_row_is_known(function: str, reduced: str, found: bool) -> None:
    loads = [Let(name, Load(name, (ROW,), F32)) for name in ("x", "y")]
    value = apply("exp", apply("subtract", X, Local("largest", F32)))
    lets = (*loads, Reduce("largest", function, Local(reduced, F32)))
    kernel = Kernel("kernel", (), (Axis("i", symbol("n")),), lets, (Store("z", (ROW,), value),), row_axes=1)
    made = with_narrow_functions(kernel).stores[0].value
    assert made == (Apply("exp_to_one", value.operands, F32) if found else value)


@pytest.mark.parametrize(
    "value",
    [
        below(X),
        below(apply("multiply", X, INNER)),
        apply("log1p", apply("exp", apply("abs", X))),
        apply("log1p", apply("abs", X)),
    ],
)
def test_other_logarithms_stay(value: Expression) -> None:
    assert written(value)[1] == value


def test_exp_to_one_has_the_bits_of_exp(tmp_path: Path) -> None:
    ends = torch.tensor([-0.0, 0.0, -math.inf, math.nan, -1e-45, -3.4e38, -103.97, -103.98, -104.7, -105.0, -87.4])
    x = torch.cat([-torch.linspace(0, 106, 3_000_001), -torch.logspace(-45, 38, 10_001), ends])
    actual, expected = (over_all(name, x, tmp_path) for name in ("exp_to_one", "exp"))
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def test_log1p_to_one_is_exact_to_an_ulp(tmp_path: Path) -> None:
    x = torch.cat([torch.linspace(0, 1, 2_000_001), torch.logspace(-45, 0, 1000), torch.tensor([math.nan])])
    y = over_all("log1p_to_one", x, tmp_path)
    assert y[-1].isnan()
    y, truth = y[:-1], torch.log1p(x[:-1].double())
    _, exponent = torch.frexp(truth)
    units = torch.exp2((exponent - 24).clamp(min=-149).double())
    assert (abs(y.double() - truth) / units).max() < 1.1


def over_all(name: str, x: Tensor, folder: Path) -> Tensor:
    """A function of vmath.h over a tensor."""
    source, made = folder / f"{name}.cpp", folder / f"{name}.so"
    source.write_text(
        f'#include "opwright/vmath.h"\nextern "C" void over_all(const float* x, float* y, long count) {{\n'
        f'_Pragma("omp simd") for (long i = 0; i < count; ++i) y[i] = opwright::{name}(x[i]);\n}}\n'
    )
    compile_with_gcc("native", "-O2", "-shared", "-fPIC", str(source), "-o", str(made))
    y = torch.empty_like(x)
    places = (ctypes.c_void_p(each.data_ptr()) for each in (x, y))
    ctypes.CDLL(str(made)).over_all(*places, ctypes.c_long(len(x)))
    return y


@pytest.mark.parametrize("name", ["normal_bell", "twice_normal_cdf"])
def test_they_are_as_exact_as_they_say(name: str, tmp_path: Path) -> None:
    payload = torch.tensor([0x7FC00123, -0x3FFEDD], dtype=torch.int32).view(torch.float32)
    ends = torch.tensor([math.inf, -math.inf, 0.0, -0.0, 13.1, -13.1, 14.0, -14.0, 1e-40, 3e38])
    x = torch.cat([torch.linspace(-15, 15, 2_000_001), ends, payload])
    y = over_all(name, x, tmp_path)
    square = x.double().square()
    if name == "normal_bell":
        allowed = torch.exp(-square / 2) * 1e-7 * (1 + square) + 2e-38
        truth = torch.exp(-square / 2)
    else:
        truth, allowed = torch.special.erfc(-x.double() / math.sqrt(2)), torch.tensor(1.7e-7)
    usual = ~x.isnan()
    assert y[~usual].isnan().all()
    assert (abs(y.double() - truth) <= torch.where(truth.isfinite(), allowed, 0).nan_to_num(2e-38))[usual].all()


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
    pair = "twice_normal_cdf(x[i]) + x[i] * normal_bell(x[i])"
    lines = []
    for value in ("twice_normal_cdf(x[i])", pair):
        source, made = f"{tmp_path}/loop.cpp", f"{tmp_path}/loop.s"
        with open(source, "w") as file:
            file.write(loop.format(value))
        compile_with_gcc("native", "-O2", "-S", source, "-o", made)
        with open(made) as file:
            lines.append(sum("\tv" in line for line in file))
    assert lines[1] < 1.25 * lines[0]
