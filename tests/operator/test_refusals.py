"""What an operator refuses, in which words; and what it leaves to the reference, saying why once."""

import inspect
import re

import pytest
import torch
from torch import Tensor

import opwright
from opwright.errors import (
    NoKernel,
    RungMissing,
    SamplesMissing,
    UnannotatedParameter,
    UnsupportedParameter,
    UnsupportedReturn,
    UntraceableReference,
)
from opwright.operator import Operator
from opwright.settings import Settings


def unannotated(x, y: Tensor):
    return x


def a_list(xs: list[Tensor]) -> Tensor:
    return xs[0]


def variadic(*xs: Tensor) -> Tensor:
    return xs[0]


def by_keyword_only(x: Tensor, *, k: float) -> Tensor:
    return x * k


def returns_a_list(x: Tensor) -> list[Tensor]:
    return [x]


def returns_open_tuple(x: Tensor) -> tuple[Tensor, ...]:
    return (x,)


@pytest.mark.parametrize(
    ("reference", "error", "fact", "hint"),
    [
        (
            unannotated,
            UnannotatedParameter,
            "parameter 'x' of unannotated has no annotation",
            "write 'x: torch.Tensor'",
        ),
        (a_list, UnsupportedParameter, "parameter 'xs' of a_list is annotated list", "a parameter is a torch.Tensor"),
        (variadic, UnsupportedParameter, "variadic takes a variable number of arguments", "a parameter of its own"),
        (
            by_keyword_only,
            UnsupportedParameter,
            "parameter 'k' of by_keyword_only can be given by keyword only",
            "drop the '*'",
        ),
        (returns_a_list, UnsupportedReturn, "returns_a_list is annotated to return list", "an operator returns"),
        (returns_open_tuple, UnsupportedReturn, "returns_open_tuple is annotated to return tuple", "spelled out"),
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


def selected(x: Tensor) -> Tensor:
    return x[x > 0]


@pytest.mark.parametrize(("reference", "line"), [(if_sum, 2), (item, 1), (loop, 1)])
@pytest.mark.parametrize("gradient", [False, True])
def test_control_flow_by_data_is_refused_at_its_line(reference, line, gradient):
    operator = opwright.operator(reference)
    for _ in range(2):
        with pytest.raises(UntraceableReference) as raised:
            operator(torch.ones(3, requires_grad=gradient))
        assert_says(
            raised.value, reference, f"{reference.__name__} looks at the values of a tensor", "torch.where", line
        )


def number(x: Tensor):
    return 3.0


def nothing(x: Tensor):
    return None


def with_number(x: Tensor):
    return x * 2, 1.0


def one_of_two(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2


@pytest.mark.parametrize(
    ("reference", "fact", "hint"),
    [
        (number, "number returns a float", "return a torch.Tensor or a tuple"),
        (nothing, "nothing returns a NoneType", "return a torch.Tensor or a tuple"),
        (with_number, "with_number returns a float at position 1", "return a torch.Tensor or a tuple"),
        (one_of_two, "one_of_two is annotated to return 2 tensors and returns 1", "correct the annotation"),
    ],
)
def test_a_wrong_return_is_refused_at_the_call(reference, fact, hint):
    with pytest.raises(UnsupportedReturn) as raised:
        opwright.operator(reference)(torch.ones(3))
    assert_says(raised.value, reference, fact, hint)


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


def seeds(x: Tensor) -> Tensor:
    torch.manual_seed(0)
    return torch.dropout(x, 0.5, True)


OUTSIDE = torch.ones(3)


def closed(x: Tensor) -> Tensor:
    return x + OUTSIDE


def itself(x: Tensor) -> Tensor:
    return x


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        (modifies, "the function modifies a tensor in place"),
        (seeds, "the function seeds the generator of random numbers"),
        (closed, "the function uses a tensor that is not one of its parameters"),
        (selected, "a size depends on the values of a tensor"),
    ],
)
def test_the_reference_serves_and_says_why_once(reference, why, capsys):
    operator = opwright.operator(reference)
    for _ in range(3):
        given, kept = torch.arange(3.0), torch.arange(3.0)
        torch.manual_seed(1)
        expected = reference(kept)
        torch.manual_seed(1)
        torch.testing.assert_close(operator(given), expected)
        torch.testing.assert_close(given, kept)
        assert operator.last_rung == "composed"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"opwright: {reference.__name__} runs its reference: ")
    assert why in line


def test_a_pinned_rung_raises_where_the_reference_would_serve():
    with pytest.raises(NoKernel, match="seeds the generator"):
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
    script = folder / "compiler"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) echo "Free Software Foundation";; *-fsyntax-only*) ;; *) exit 1;; esac\n'
    )
    script.chmod(0o700)
    return str(script)


@pytest.mark.parametrize(
    ("compiler", "words"),
    [
        (lambda folder: "/nonexistent", r"there is no working C\+\+ compiler: /nonexistent was not found"),
        (failing_compiler, r"compiling \S+ failed"),
    ],
)
def test_without_a_compiler_that_works_the_reference_serves(compiler, words, tmp_path, capsys):
    operator = Operator(plain, settings=Settings(tmp_path / "cache", compiler=compiler(tmp_path)))
    for gradient in (False, False, True):
        x = torch.ones(3, requires_grad=gradient)
        torch.testing.assert_close(operator(x), plain(x))
        assert operator.last_rung == "composed"
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("opwright:")]
    assert said
    assert all(re.search(words, line) for line in said)


def test_a_quiet_operator_says_nothing(tmp_path, capsys):
    operator = Operator(seeds, settings=Settings(tmp_path / "cache", notify=False))
    operator(torch.ones(3))
    assert capsys.readouterr().err == ""
