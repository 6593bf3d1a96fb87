"""References with all that they use, as the text of one module that can be run alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from math import pi as half_turn

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, sigmoid
from torch.nn.functional import gelu as smooth

import opwright
from opwright.errors import ReferenceWithoutText
from opwright.operators.reference_text import reference_text

SLOPE, NEVER = 0.25, float("inf")
SIZES = (2, (3, -1.5), complex(-0.0, math.inf))
BOUNDS = (0, (math.inf, "a"), torch.float16)
DTYPE = torch.float64
TABLE = {"a": 1}
SWITCH = [2.0]
MODULE = nn.Linear(2, 2)
X = torch.linspace(-2, 2, 12, dtype=DTYPE).reshape(3, 4)
Pair = tuple[torch.Tensor, torch.Tensor]


def leak(x):
    return torch.where(x > 0, x, SLOPE * x)


also_leak = leak


@opwright.operator
def doubled_in_text(x: torch.Tensor) -> torch.Tensor:
    # A comment of the user's.
    return x * 2


def plain(x: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)  # a local name that a method has too
    return F.elu(x - mean) * math.e


def reaching(x: Tensor, y: Pair | None = None, width: float = half_turn) -> torch.Tensor:
    return also_leak(x) * width + sigmoid(smooth(x)) + nn.functional.elu(x)


def with_constants(x: torch.Tensor) -> torch.Tensor:
    first, (second, third), fourth = SIZES
    high = max(NEVER, BOUNDS[0], fourth.imag) * math.copysign(1, -fourth.real)
    return torch.clamp(x * first + second * third, max=high).to(DTYPE)


def of_an_operator(x: torch.Tensor) -> torch.Tensor:
    return leak(doubled_in_text(x)) + of_the_same(x)


def of_the_same(x: torch.Tensor) -> torch.Tensor:
    return doubled_in_text(x)


def nested(x: torch.Tensor) -> torch.Tensor:
    def inner(y):
        return [leak(row) for row in y]

    return torch.stack(inner(x))


def calls_itself(x: torch.Tensor, n: int = 2) -> torch.Tensor:
    return x if n == 0 else calls_itself(x * 2, n - 1)


def closed_over(factor):
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * factor

    return scaled


@pytest.mark.parametrize(
    "function",
    [plain, reaching, with_constants, nested, calls_itself, closed_over(1.5)],
    ids=lambda function: function.__name__,
)
def test_the_module_computes_the_same(function):
    assert torch.equal(run_text(function), function(X))


def test_an_operator_stands_as_its_reference():
    assert torch.equal(run_text(of_an_operator), leak(X * 2) + X * 2)
    assert "    # A comment of the user's.\n" in text_of(of_an_operator)


def text_of(*functions, with_packages=False):
    return reference_text(functions, with_packages=with_packages).text("The functions.")


def run_text(function):
    text = text_of(function)
    assert "opwright" not in text
    space: dict[str, object] = {}
    exec(compile(text, "reference.py", "exec"), space)
    return space[function.__name__](X)


def test_what_stands_once_is_written_once():
    text = text_of(nested, reaching)
    assert text.count("def leak(") == 1
    assert text.index("def leak(") < text.index("def nested(")
    assert text == text_of(nested, reaching)


def uses_a_package(x):
    return x * pytest.approx(1.0)


def test_packages_are_imported_where_they_may_be():
    assert reference_text([uses_a_package], with_packages=True).packages == {"pytest"}
    assert "import pytest\n" in text_of(uses_a_package, with_packages=True)
    with pytest.raises(ReferenceWithoutText, match="uses pytest, the module pytest"):
        text_of(uses_a_package)


def uses_a_tensor(x):
    return x * X


def uses_a_dict(x):
    return x * TABLE["a"]


def uses_a_module(x):
    return MODULE(x)


def uses_a_default(x, values=SWITCH):
    return x * values.pop()


def uses_opwright(x):
    return opwright.opaque(x)


@functools.cache
def remembered(x):
    return x


def uses_what_is_remembered(x):
    return remembered(x)


def uses_nothing_known(x):
    return x * undefined  # noqa: F821


def with_a_decorator():
    @torch.no_grad()
    def still(x):
        return x * 2

    return still


unnamed: Callable[[Tensor], Tensor] = lambda x: x  # noqa: E731


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (uses_a_tensor, "uses_a_tensor uses X, a value of type Tensor"),
        (uses_a_dict, "uses_a_dict uses TABLE, a value of type dict"),
        (uses_a_module, "uses_a_module uses MODULE, a value of type Linear"),
        (uses_a_default, "uses_a_default uses SWITCH, a value of type list"),
        (uses_opwright, "uses_opwright uses opwright, the module opwright"),
        (uses_what_is_remembered, "uses remembered, a value of type _lru_cache_wrapper"),
        (uses_nothing_known, "uses_nothing_known uses undefined, which is not defined"),
        (with_a_decorator(), r"still has the decorator torch.no_grad\(\), which would be lost"),
        (closed_over(X), "scaled uses factor, a value of type Tensor"),
        (unnamed, "<lambda> is not defined by `def`"),
        (MODULE, "Linear is not a function written in Python"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
@pytest.mark.parametrize("with_packages", [False, True])
def test_what_has_no_text_is_named(function, words, with_packages):
    with pytest.raises(ReferenceWithoutText, match=words):
        text_of(function, with_packages=with_packages)


def test_one_name_for_two_things_is_refused():
    with pytest.raises(ReferenceWithoutText, match="mean different things by factor"):
        text_of(closed_over(2.0), by_another_factor())


def by_another_factor():
    factor = 2

    def another(x: torch.Tensor) -> torch.Tensor:
        return x * factor

    return another
