"""Under transforms a function without kernels runs once for each call, at the level of the call."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

from opwright.api.operator import Operator
from opwright.errors import FallbackWarning
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.falls_back,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),  # by torch's own forward mode
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
]

generator = torch.Generator()
calls: list[int] = []
Function = Callable[[Tensor], Tensor]


def of_a_generator(x: Tensor) -> Tensor:
    return torch.rand(x.shape[-1:], generator=generator) * x.sin()


def of_numpy(x: Tensor) -> Tensor:
    return float(np.random.rand()) * x.sin()


def of_python(x: Tensor) -> Tensor:
    return random.random() * x.sin()


def that_counts(x: Tensor) -> Tensor:
    calls.append(1)
    return x.sin() * len(calls)


def that_counts_and_adds(x: Tensor) -> Tensor:
    """The sum asks the arguments for their sizes first, in C++ that lets no error through."""
    calls.append(1)
    return x + x


def that_prints(x: Tensor) -> Tensor:
    print("ran")
    return x.sin()


def of_data(x: Tensor) -> Tensor:
    """The data hide from gradients."""
    return x.data.sin() * x


def that_asks(x: Tensor) -> Tensor:
    return x * 2 if isinstance(x, torch.nn.Parameter) else x.sin()


FUNCTIONS = [of_a_generator, of_numpy, of_python, that_counts, that_counts_and_adds, that_prints, of_data, that_asks]


def sums(function: Function) -> Function:
    return lambda x: function(x).sum()


TRANSFORMS: dict[str, Callable[[Function, Tensor], Any]] = {
    "grad": lambda f, x: grad(sums(f))(x),
    "grad and value": lambda f, x: grad_and_value(sums(f))(x),
    "vjp": lambda f, x: vjp(f, x)[1](x.cos()),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jvp": lambda f, x: jvp(f, (x,), (x.cos(),)),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hessian": lambda f, x: hessian(sums(f))(x),
    "vmap of grad": lambda f, x: vmap(grad(sums(f)))(x),
    "grad of vmap": lambda f, x: grad(sums(vmap(f)))(x),
    "grad of grad": lambda f, x: grad(sums(grad(sums(f))))(x),
}
BY_DAY = [(function, name) for function in FUNCTIONS for name in ("grad and value", "vmap of grad")]
CASES = [*BY_DAY, *[(function, name) for function in FUNCTIONS for name in TRANSFORMS]]
CASES.remove((of_data, "grad of grad"))  # in eager, data hide from the inner gradient alone


@pytest.fixture(autouse=True)
def _from_the_start() -> Iterator[None]:
    _start()
    yield
    calls.clear()


def _start() -> None:
    generator.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    calls.clear()


def _outcome(transform: Callable[[Function, Tensor], Any], function: Function, output: Any) -> tuple[Any, ...]:
    """The results, what was printed, and what is drawn next; or the type of the error."""
    _start()
    x = torch.linspace(0.1, 0.9, 6).reshape(2, 3)
    try:
        found = [transform(function, x) for _ in range(2)]
    except RuntimeError as error:
        return type(error), output.readouterr().out
    return found, output.readouterr().out, [torch.rand(1, generator=generator).item(), np.random.rand(), len(calls)]


@pytest.mark.parametrize(("function", "name"), mostly_at_night(dict.fromkeys(CASES), BY_DAY))
def test_it_is_as_eager(function: Function, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Results, and effects as often as in eager."""
    operator = Operator(function, name=f"as_written::{function.__name__}")
    expected = _outcome(TRANSFORMS[name], function, capsys)
    found = _outcome(TRANSFORMS[name], operator, capsys)
    if isinstance(expected[0], list):
        torch.testing.assert_close(found[0], expected[0])
    assert found[1:] == expected[1:]


@pytest.mark.parametrize("function", [of_a_generator, that_asks])
def test_gradients_in_inference_mode(function: Function) -> None:
    operator, x = Operator(function, name=f"as_written::inference_{function.__name__}"), torch.ones(3)
    for _ in range(2):
        with torch.inference_mode():
            generator.manual_seed(0)
            found = grad(sums(operator))(x)
            generator.manual_seed(0)
            torch.testing.assert_close(found, grad(sums(function))(x))


def test_a_list_that_is_given_is_changed_as_often_as_in_eager() -> None:
    def appending(x: Tensor, kept: list[Tensor]) -> Tensor:
        kept.append(x.detach())
        return x.sin() * len(kept)

    operator, x = Operator(appending, name="as_written::appending"), torch.ones(2, 3)
    for transform in TRANSFORMS.values():
        lists: list[list[Tensor]] = [[], []]
        found = transform(partial(operator, kept=lists[0]), x)
        torch.testing.assert_close(found, transform(partial(appending, kept=lists[1]), x))
        assert len(lists[0]) == len(lists[1])


def test_an_operator_in_a_function_as_written_runs_once_too() -> None:
    """The outer function may ask whether two arguments are one, and is not served below the level then."""

    def outer(x: Tensor, y: Tensor) -> Tensor:
        calls.append(1)
        return inner(x) if x is y else x * y

    inner = Operator(that_counts, name="as_written::inner")
    operator, x = Operator(outer, name="as_written::outer"), torch.ones(2, 3)
    for transform in TRANSFORMS.values():
        outcomes = []
        for function in (operator, outer):
            calls.clear()
            outcomes.append((transform(lambda x, function=function: function(x, x), x), len(calls)))
        torch.testing.assert_close(*outcomes)


@pytest.mark.parametrize("transform", ["grad", "vmap of grad"])
def test_it_warns_once(transform: str, recwarn: pytest.WarningsRecorder) -> None:
    operator, x = Operator(of_numpy, name=f"as_written::warned_{len(transform)}"), torch.ones(2, 3)
    for _ in range(3):
        TRANSFORMS[transform](operator, x)
    assert [warning.category for warning in recwarn] == [FallbackWarning]


def test_a_wrong_call_raises_its_own_error_and_hides_nothing() -> None:
    def product(x: Tensor, y: Tensor) -> Tensor:
        return x.sin() * y

    operator = Operator(product, name="as_written::product")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="must match the size"):
            grad(lambda x: operator(x, torch.ones(4)).sum())(torch.ones(3))
    x = torch.linspace(0, 1, 3)
    torch.testing.assert_close(
        grad(lambda x: operator(x, x.cos()).sum())(x), grad(lambda x: product(x, x.cos()).sum())(x)
    )
    assert operator.last_rung == "cpp"
