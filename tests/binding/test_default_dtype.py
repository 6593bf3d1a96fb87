"""Kernels under another default dtype: results are those of the function there, whatever they were before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

import opwright
from opwright.binding.variants.states import OutsideChanged
from tests.binding.default_dtypes import FUNCTIONS, default_dtype
from tests.suite.nights import mostly_at_night

BOTH = (torch.float32, torch.float64)
pytestmark = pytest.mark.built_together


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    torch.set_default_dtype(torch.float32)


def given(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    n = torch.tensor([[1, -2, 3], [0, 4, 5]])
    x = torch.tensor([[0.1, 0.7, -0.4], [1.3, 0.2, -2.0]], dtype=dtype)
    return n, x.requires_grad_()


def derivatives(function: Callable[..., Any], dtype: torch.dtype) -> list[Tensor]:
    """The result, the gradient, and the gradient of that."""
    n, x = given(dtype)
    result = function(n, x)
    (first,) = torch.autograd.grad(result.sin().sum(), x, create_graph=True)
    return [result, first, *torch.autograd.grad(first.sin().sum(), x)]


def assert_same(found: Sequence[Tensor], expected: Sequence[Tensor], *dtypes: torch.dtype) -> None:
    """The same dtypes, and values to within the rounding of the narrowest that results are computed in."""
    tolerance = 2e-5 if torch.float32 in dtypes else 1e-13
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


CASES = [(function, dtype) for dtype in BOTH for function in FUNCTIONS]
BY_DAY = [(function, BOTH[place % 2]) for place, function in enumerate(FUNCTIONS) if place % 6 == 0]


@pytest.mark.parametrize(
    ("function", "dtype"),
    mostly_at_night(CASES, BY_DAY),
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_results_are_those_of_the_function_under_each(function: Callable[..., Any], dtype: torch.dtype) -> None:
    operator = opwright.operator(function, name=f"default_{function.__name__}_{str(dtype).removeprefix('torch.')}")
    for default in (*BOTH, torch.float32, torch.float64):
        with default_dtype(default):
            expected = derivatives(function, dtype)
            for _ in range(2):  # derived or found; then by the hot path
                assert_same(derivatives(operator, dtype), expected, dtype, default)
                assert operator.last_rung == "cpp"


@opwright.operator(name="default_softened")
def softened(n: Tensor, x: Tensor) -> Tensor:
    return torch.tanh(x + n / 3)


def test_the_hot_path_knows_what_it_was_derived_under() -> None:
    n, x = given(torch.float32)
    for default in BOTH:
        with default_dtype(default):
            softened(n, x)
            softened(n, x)
            assert softened._variants.latest.play(n, x).dtype is default is softened.reference(n, x).dtype
    assert softened._variants.latest.play(n, x) is NotImplemented


def test_a_default_that_is_known_derives_nothing_again() -> None:
    n, x = given(torch.float32)
    for default in BOTH:
        with default_dtype(default):
            softened(n, x)
    before = softened._variants.count()
    for default in (*BOTH, *BOTH):
        with default_dtype(default):
            softened(n, x)
            assert softened.last_rung == "cpp"
    assert softened._variants.count() == before


@pytest.mark.parametrize("default", [torch.float16, torch.bfloat16], ids=str)
def test_half_types_are_the_functions(default: torch.dtype) -> None:
    n, x = given(torch.float32)
    with default_dtype(default):
        found, expected = softened(n, x), softened.reference(n, x)
    assert softened.last_rung == "composed"
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_gradient_is_that_of_the_call_whatever_the_default_is_by_then() -> None:
    for default, later in (BOTH, BOTH[::-1]):
        found = []
        for function in (softened, softened.reference):
            n, x = given(torch.float32)
            with default_dtype(default):
                result = function(n, x)
            with default_dtype(later):
                found.append(torch.autograd.grad(result, x, torch.ones_like(result)))
        torch.testing.assert_close(*found)


def test_a_second_derivative_needs_the_default_of_the_call() -> None:
    n, x = given(torch.float64)
    result = softened(n, x)
    with (
        default_dtype(torch.float64),
        pytest.raises(OutsideChanged, match="torch's default dtype has changed since the call"),
    ):
        torch.autograd.grad(result.sum(), x, create_graph=True)
    torch.autograd.grad(result.sum(), x, create_graph=True)


def scaled(n: Tensor, x: Tensor) -> Tensor:
    return (torch.sin(x) * (n * 0.1)).sum()


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda of: of.grad(scaled, argnums=1),
    "vmap": lambda of: of.vmap(scaled),
    "jacrev": lambda of: of.jacrev(scaled, argnums=1),
    "hessian": lambda of: of.hessian(scaled, argnums=1),
    "jvp": lambda of: lambda n, x: of.jvp(lambda x: scaled(n, x), (x,), (x + 1,)),
    "vjp": lambda of: lambda n, x: of.vjp(lambda x: scaled(n, x), x)[1](x.sum()),
    "linearize": lambda of: lambda n, x: of.linearize(lambda x: scaled(n, x), x)[1](x + 1),
}


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")  # torch.func.linearize's own
@pytest.mark.parametrize("transform", mostly_at_night(TRANSFORMS, ("vmap", "hessian", "linearize")))
def test_transforms_of_functions(transform: str) -> None:
    ours, theirs = (TRANSFORMS[transform](library) for library in (opwright.func, torch.func))
    for default in (*BOTH, torch.float32):
        with default_dtype(default):
            n, x = (tensor.detach() for tensor in given(torch.float32))
            torch.testing.assert_close(ours(n, x), theirs(n, x))


OPERATOR = opwright.operator(scaled, name="default_scaled")
OF_OPERATORS: dict[str, Callable[[Any, Tensor, Tensor], Any]] = {
    "grad": lambda f, n, x: torch.func.grad(f, argnums=1)(n, x),
    "vmap": lambda f, n, x: torch.vmap(f)(n, x),
    "jvp": lambda f, n, x: torch.func.jvp(lambda x: f(n, x), (x,), (x + 1,)),
    "hessian": lambda f, n, x: torch.func.hessian(f, argnums=1)(n, x),
    "compile": lambda f, n, x: torch.compile(lambda n, x: f(n, x) + 1, backend="aot_eager")(n, x),
    "function": lambda f, n, x: getattr(f, "on", lambda _: f)("function")(n, x),
    "dispatcher": lambda f, n, x: getattr(f, "overload", f)(n, x),
    "meta": lambda f, n, x: torch.zeros((), dtype=f(n.to("meta"), x.to("meta")).dtype),
    "export": lambda f, n, x: torch.export.export(_Calls(f), (n, x)).module()(n, x),
}


class _Calls(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, n: Tensor, x: Tensor) -> Any:
        return self.function(n, x)


@pytest.mark.parametrize("call", OF_OPERATORS.values(), ids=OF_OPERATORS)
def test_operators_under_transforms_and_compilers(call: Callable[[Any, Tensor, Tensor], Any]) -> None:
    n, x = (tensor.detach() for tensor in given(torch.float32))
    for default in (*BOTH, torch.float32):
        with default_dtype(default):
            expected = call(scaled, n, x)
            for _ in range(2):
                torch.testing.assert_close(call(OPERATOR, n, x), expected)


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.register_buffer("count", torch.tensor([1, 2, 3]))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.inner(x)) + self.count / 3 + torch.linspace(0.0, 1.0, 3)


def test_modules() -> None:
    network = Network()
    served = opwright.module(network)
    for default in (*BOTH, torch.float32):
        with default_dtype(default):
            network.to(default)
            x = given(default)[1]
            for _ in range(2):
                found, expected = served(x), network(x)
                torch.testing.assert_close(found, expected)
                torch.testing.assert_close(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x))
                assert served.last_rung == "cpp"


@opwright.operator(name="default_advanced", mutates=("x",))
def advanced(x: Tensor, n: Tensor) -> None:
    x.add_(torch.sin(x) * (n * 0.1))


@opwright.operator(name="default_of_a_list")
def of_a_list(tensors: list[Tensor]) -> dict[str, Tensor]:
    return {"sum": torch.sin(tensors[0]) + tensors[1] / 3}


def test_structures_and_arguments_that_change() -> None:
    for default in (*BOTH, torch.float32):
        with default_dtype(default):
            n, x = (tensor.detach() for tensor in given(torch.float64))
            for _ in range(2):
                torch.testing.assert_close(of_a_list([x, n]), of_a_list.reference([x, n]))
                mine, theirs = x.clone(), x.clone()
                advanced(mine, n)
                advanced.reference(theirs, n)
                torch.testing.assert_close(mine, theirs)
                assert advanced.last_rung == of_a_list.last_rung == "cpp"


@opwright.operator(name="default_of_a_number")
def of_a_number(n: Tensor, x: Tensor, scale: float, times: int) -> Tensor:
    return torch.sin(x) * scale + n * scale + n / times


def test_numbers_that_change() -> None:
    for default in (*BOTH, torch.float32):
        with default_dtype(default):
            n, x = (tensor.detach() for tensor in given(torch.float32))
            for scale, times in ((0.1, 3), (0.3, 7), (0.7, 5)):
                torch.testing.assert_close(of_a_number(n, x, scale, times), of_a_number.reference(n, x, scale, times))
                assert of_a_number.last_rung == "cpp"


TABLE = torch.tensor([1, 2, 3])


@opwright.operator(name="default_of_a_table")
def of_a_table(x: Tensor) -> Tensor:
    return torch.sin(x) + TABLE / 3


def test_tensors_from_outside() -> None:
    for default in (*BOTH, torch.float32):
        with default_dtype(default):
            x = given(torch.float32)[1]
            for _ in range(2):
                torch.testing.assert_close(of_a_table(x), of_a_table.reference(x))
                assert of_a_table.last_rung == "cpp"
