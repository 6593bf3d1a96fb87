"""Numbers of a trace are of Python's classes before the user's code, however it asks, and of torch's before torch."""

from __future__ import annotations

import functools
import numbers
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.errors import NumberNeeded, SideEffect
from opwright.tracing.interface.specs import NumberSpec, TensorSpec
from opwright.tracing.trace import trace
from tests.suite.nights import mostly_at_night


def by_pattern(value: Any) -> object:
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case _:
            return "another"


@functools.singledispatch
def dispatched(value: Any) -> object:
    return "another"


@dispatched.register
def _of_int(value: int) -> object:
    return "int"


@dispatched.register
def _of_float(value: float) -> object:
    return "float"


QUESTIONS: Mapping[str, Callable[[Any], object]] = {
    "isinstance": lambda value: [isinstance(value, kind) for kind in (bool, int, float, complex, str)],
    "pattern": by_pattern,
    "singledispatch": dispatched,
    "__class__": lambda value: value.__class__,
    "abstract class": lambda value: [isinstance(value, kind) for kind in (numbers.Integral, numbers.Real)],
    "hasattr": lambda value: [hasattr(value, name) for name in ("bit_count", "hex", "shape", "is_integer")],
}


class Holder:
    """Ways to a question that no name in the function shows."""

    def __init__(self, ask: Callable[[Any], object]) -> None:
        self._ask = ask

    def method(self, value: Any) -> object:
        return self._ask(value)

    def __call__(self, value: Any) -> object:
        return self._ask(value)


ROUTES: Mapping[str, Callable[[Callable[[Any], object]], Callable[[Any], object]]] = {
    "itself": lambda ask: ask,
    "method": lambda ask: Holder(ask).method,
    "object": Holder,
    "partial": functools.partial,
    "module": lambda ask: lambda value: types.SimpleNamespace(ask=ask).ask(value),
    "table": lambda ask: lambda value: {"ask": ask}["ask"](value),
}
VALUES: Mapping[str, Callable[[Tensor, float, int], Any]] = {
    "size": lambda x, k, n: x.shape[0],
    "float": lambda x, k, n: k,
    "int": lambda x, k, n: n,
    "computed": lambda x, k, n: x.numel() * k + n,
    "comparison": lambda x, k, n: x.shape[0] > 2,
}
SPECS = [TensorSpec("x", torch.float32, (4, 3)), NumberSpec("k", 2.5), NumberSpec("n", 3)]
CASES = [(question, route, value) for value in VALUES for route in ROUTES for question in QUESTIONS]


@pytest.mark.parametrize(("question", "route", "value"), mostly_at_night(CASES, by_day=24))
def test_every_question_is_answered_as_in_a_call(question: str, route: str, value: str) -> None:
    ask, make = ROUTES[route](QUESTIONS[question]), VALUES[value]
    expected = ask(make(torch.ones(4, 3), 2.5, 3))

    def reference(x: Tensor, k: float, n: int) -> Tensor:
        if (answer := ask(make(x, k, n))) != expected:
            raise ValueError(f"{answer}, in a call {expected}")
        return x * k * n

    try:
        trace(reference, SPECS)
    except NumberNeeded:  # an attribute of a number that varies, which is one number for each kernel then
        assert (question, value) == ("hasattr", "int")


def of_type(value: Any) -> object:
    return type(value) is int


@pytest.mark.parametrize("value", ["size", "int"])
@pytest.mark.parametrize("ask", [of_type, numpy.isscalar])
def test_a_type_cannot_be_told(ask: Callable[[Any], object], value: str) -> None:
    def reference(x: Tensor, k: float, n: int) -> Tensor:
        return x * k if ask(VALUES[value](x, k, n)) else x

    with pytest.raises(SideEffect, match="of which type a number is"):
        trace(reference, SPECS)


def two_names(x: Tensor) -> bool:
    one, other = x.shape[0], x.size(0)
    return one is other


ONE_OBJECT: Mapping[str, Callable[[Tensor], bool]] = {
    "a number": lambda x: next(n is FIVE for n in x.shape),
    "computed": lambda x: x.shape[0] is x.shape[0],
    "computed and a number": lambda x: x.shape[0] is FIVE,
    "negated": lambda x: x.shape[0] is not FIVE,
    "two names": two_names,
    "whether it is whole": lambda x: (x.shape[0] * 0.5).is_integer() is True,
}
FIVE = 5


@pytest.mark.falls_back
@pytest.mark.parametrize("question", ONE_OBJECT)
def test_functions_that_ask_whether_two_numbers_are_one_object_serve_themselves(question: str) -> None:
    ask = ONE_OBJECT[question]

    def reference(x: Tensor) -> Tensor:
        return x * (2 if ask(x) else 3)

    operator = Operator(reference, name="tests::one_object")
    for length in (5, 3, 300, 6):
        assert torch.equal(operator(torch.ones(length)), reference(torch.ones(length)))
        assert operator.last_rung == "composed"


COMPARED: Mapping[str, Callable[[Tensor, float], bool]] = {
    "named": lambda x, k: next(flag is True for flag in (x.shape[0] > 4,)),
    "computed": lambda x, k: (x.shape[0] > 4) is True,
    "of a number": lambda x, k: (k > 1.0) is True,
    "as a factor": lambda x, k: (x.shape[0] == 5) * 2 > 1,
}


@pytest.mark.parametrize("question", COMPARED)
def test_comparisons_of_numbers_are_true_or_false(question: str) -> None:
    ask = COMPARED[question]

    def reference(x: Tensor, k: float) -> Tensor:
        return x * (2 if ask(x, k) else 3) * k

    operator = Operator(reference, name="tests::compared")
    for length, value in ((5, 1.5), (3, 0.5), (6, 2.0), (4, 3.0)):
        x = torch.ones(length)
        assert torch.equal(operator(x, value), reference(x, value)), (length, value)


def test_an_attribute_that_needs_a_value_is_refused_for_a_number_and_told_of_a_size() -> None:
    def of_number(x: Tensor, k: float, n: int) -> Tensor:
        return x * k * getattr(n, "real", 0)

    def of_size(x: Tensor, k: float, n: int) -> Tensor:
        assert x.shape[0].bit_length() == 3
        return x * k * n

    with pytest.raises(NumberNeeded, match="reads real of a number") as refusal:
        trace(of_number, SPECS)
    assert refusal.value.names == ("n",)
    trace(of_size, SPECS)


def test_torch_is_told_of_its_own_class_and_left_as_it_was() -> None:
    before = [kind.__getattribute__ for kind in (torch.SymInt, torch.SymFloat, torch.SymBool)]

    def reference(x: Tensor, k: float, n: int) -> Tensor:
        size = x.shape[0]
        assert isinstance(size, int)
        assert isinstance(size, torch.SymInt)
        assert torch.sym_max(size, 2) >= 2
        return torch.nn.functional.pad(x, (0, size)) * k

    trace(reference, SPECS)
    assert [kind.__getattribute__ for kind in (torch.SymInt, torch.SymFloat, torch.SymBool)] == before
    assert all(kind.__getattribute__ is object.__getattribute__ for kind in (torch.SymInt, torch.SymFloat))


class Scaling:
    """A library's class, whose method looks which number it has."""

    def factor(self, value: Any) -> float:
        return 2.0 if isinstance(value, int) else 3.0 if isinstance(value, float) else 100.0


SCALING = Scaling()


def test_kernels_go_the_way_of_the_function() -> None:
    def scaled(x: Tensor, k: float):
        size = x.shape[0]
        return x * SCALING.factor(k) * SCALING.factor(size) * k

    operator = Operator(scaled, name="tests::scaled_by_kind")
    for length, value in ((4, 1.5), (6, 2.5), (4, 3), (6, 5), (3, 0.5)):
        x = torch.ones(length, 2)
        torch.testing.assert_close(operator(x, value), scaled(x, value))
        assert operator.last_rung == "cpp"
