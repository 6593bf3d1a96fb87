"""What an operator refuses, in which words; and what it leaves to the reference, saying why once."""

import inspect
import re

import pytest
import torch
from torch import Tensor

import opwright
from opwright.api.operator import Operator
from opwright.errors import (
    RungMissing,
    SamplesMissing,
    UndeclaredMutation,
    UnsupportedParameter,
    UnsupportedReturn,
    UntraceableReference,
)
from opwright.settings import Settings
from tests.executables import write_executable


def returns_numbers(x: Tensor) -> tuple[float, int]:
    return 1.0, x.shape[0]


@pytest.mark.parametrize(
    ("reference", "error", "fact", "hint"),
    [
        (returns_numbers, UnsupportedReturn, "returns_numbers is annotated to return", "an operator returns"),
    ],
)
def test_a_signature_is_refused_at_the_definition(reference, error, fact, hint):
    with pytest.raises(error) as raised:
        opwright.operator(reference)
    assert_says(raised.value, reference, fact, hint)


def assert_says(error, reference, fact, hint, line=0):
    file, first = inspect.getsourcefile(reference), inspect.getsourcelines(reference)[1]
    assert str(error).startswith(f"{file}:{first + line}: ")
    assert fact in error.fact
    assert hint in error.hint


def if_sum(x: Tensor) -> Tensor:
    y = x * 2
    if x.sum() > 0:
        return y
    return x


def item(x: Tensor) -> Tensor:
    return x * x.max().item()


def loop(x: Tensor) -> Tensor:
    while x.sum() < 10:
        x = x * 2
    return x


@pytest.mark.parametrize(("reference", "line"), [(if_sum, 2), (item, 1), (loop, 1)])
@pytest.mark.parametrize("gradient", [False, True])
def test_control_flow_by_data_is_refused_at_its_line_where_a_kernel_is_asked_for(reference, line, gradient):
    operator = opwright.operator(reference)
    for _ in range(2):
        with pytest.raises(UntraceableReference) as raised:
            operator.on("cpp")(torch.ones(3, requires_grad=gradient))
        assert_says(
            raised.value, reference, f"{reference.__name__} looks at the values of a tensor", "torch.where", line
        )


def one_of_two(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2


def test_a_return_that_is_not_as_annotated_is_refused_at_the_call():
    with pytest.raises(UnsupportedReturn) as raised:
        opwright.operator(one_of_two)(torch.ones(3))
    fact = "one_of_two is annotated to return 2 tensors and returns 1"
    assert_says(raised.value, one_of_two, fact, "correct the annotation")


def number(x: Tensor):
    return 3.0


def nothing(x: Tensor):
    return None


def with_size(x: Tensor):
    return x * 2, x.shape[0]


def one_element(x: Tensor):
    return x[1:]


def overlapping(x: Tensor):
    y = x * 2
    return y[1:], y[:-1]


class OwnError(Exception):
    pass


def raising(x: Tensor) -> Tensor:
    if x.shape[0] > 3:
        raise OwnError("at most three")
    return x * 2


def test_an_error_of_the_reference_is_its_own():
    operator = opwright.operator(raising)
    torch.testing.assert_close(operator(torch.ones(3)), torch.full((3,), 2.0))
    for _ in range(2):
        with pytest.raises(OwnError, match=r"^at most three$"):
            operator(torch.ones(4))
    assert operator(torch.ones(2)).shape == (2,)


def modifies(x: Tensor) -> Tensor:
    return x.add_(1)


def modifies_through_a_view(x: Tensor) -> Tensor:
    x[0].add_(5)
    return x * 2


@pytest.mark.parametrize("reference", [modifies, modifies_through_a_view])
@pytest.mark.parametrize("gradient", [False, True])
def test_a_change_of_an_argument_that_is_not_declared_is_refused(reference, gradient):
    operator = opwright.operator(reference)
    for _ in range(2):
        x = torch.ones(3, requires_grad=gradient) * 1
        with pytest.raises(UndeclaredMutation) as raised:
            operator(x)
        assert_says(raised.value, reference, "mutates= does not name", "or change a copy", line=1)
        assert x.tolist() == [1, 1, 1]


def test_mutates_names_tensor_parameters():
    with pytest.raises(UnsupportedParameter) as raised:
        opwright.operator(mutates=("y",))(modifies)
    assert_says(raised.value, modifies, "mutates= names 'y'", "annotated torch.Tensor")


def seeds(x: Tensor) -> Tensor:
    torch.manual_seed(0)
    return torch.dropout(x, 0.5, True)


OUTSIDE = torch.ones(3)


def closed(x: Tensor) -> Tensor:
    return x + OUTSIDE


def itself(x: Tensor) -> Tensor:
    return x


@pytest.mark.falls_back
@pytest.mark.parametrize(
    ("reference", "why"),
    [
        (seeds, "seeds the generator of random numbers"),
        (number, "number returns no tensor that it computes"),
        (nothing, "nothing returns no tensor that it computes"),
        (with_size, "with_size returns a SymInt at position 1"),
        (one_element, "returns a view of one of its arguments"),
        (overlapping, "returns two views of the same memory"),
    ],
)
def test_the_reference_serves_and_says_why_once(reference, why, told):
    operator = opwright.operator(reference)
    for _ in range(3):
        given, kept = torch.arange(3.0), torch.arange(3.0)
        torch.manual_seed(1)
        expected = reference(kept)
        torch.manual_seed(1)
        torch.testing.assert_close(operator(given), expected)
        torch.testing.assert_close(given, kept)
        assert operator.last_rung == "composed"
    (line,) = told()
    assert line.startswith(f"opwright: {reference.__name__} falls back to your function: ")
    assert why in line


def test_a_pinned_rung_raises_where_the_reference_would_serve():
    with pytest.raises(UntraceableReference, match="seeds the generator"):
        opwright.operator(seeds).on("cpp")(torch.ones(3))


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda f: f.on("cuda"), RungMissing, "closed has no rung 'cuda' here"),
        (
            lambda f: f.on("gpu"),
            RungMissing,
            "there is no rung 'gpu'\nhint: the rungs are composed, function, cpp, cuda",
        ),
        (lambda f: f.derivation(), SamplesMissing, "closed has no samples"),
    ],
)
def test_what_does_not_exist_is_named(ask, error, words):
    with pytest.raises(error) as raised:
        ask(opwright.operator(closed))
    assert words in str(raised.value)


def plain(x: Tensor) -> Tensor:
    return x * 2 - 1


def failing_compiler(folder):
    text = (
        '#!/bin/sh\ncase "$*" in *--version*) echo "Free Software Foundation";; *-fsyntax-only*) ;; *) exit 1;; esac\n'
    )
    return str(write_executable(folder / "compiler", text))


@pytest.mark.falls_back
@pytest.mark.parametrize(
    ("compiler", "words"),
    [
        (lambda folder: "/nonexistent", r"there is no working C\+\+ compiler: /nonexistent was not found"),
        (failing_compiler, r"compiling \S+ failed"),
    ],
)
def test_without_a_compiler_that_works_the_reference_serves(compiler, words, tmp_path, told):
    operator = Operator(plain, settings=Settings(tmp_path / "cache", compiler=compiler(tmp_path)))
    for gradient in (False, False, True):
        x = torch.ones(3, requires_grad=gradient)
        torch.testing.assert_close(operator(x), plain(x))
        assert operator.last_rung == "composed"
    said = [line for line in told() if line.startswith("opwright:")]
    assert said
    assert all(re.search(words, line) for line in said)


@pytest.mark.falls_back
def test_a_quiet_operator_says_nothing(tmp_path, told):
    operator = Operator(seeds, settings=Settings(tmp_path / "cache", notify=False))
    operator(torch.ones(3))
    assert not told()
