"""A reference with all that it uses, as a module that can be run alone."""

from __future__ import annotations

import functools
import math
from math import pi as half_turn

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import sigmoid
from torch.nn.functional import gelu as smooth

import opwright
from opwright.errors import NotEjectable
from opwright.projects.files.carried import carry

SLOPE, NEVER = 0.25, float("inf")
SIZES = (2, (3, -1.5))
DTYPE = torch.float64
TABLE = {"a": 1}
X = torch.linspace(-2, 2, 12, dtype=DTYPE).reshape(3, 4)


def leak(x):
    return torch.where(x > 0, x, SLOPE * x)


also_leak = leak


@opwright.operator
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def plain(x: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)  # a local name that a method has too
    return F.elu(x - mean) * math.e


def reaching(x: torch.Tensor, width: float = half_turn) -> torch.Tensor:
    return also_leak(x) * width + sigmoid(smooth(x))


def with_constants(x: torch.Tensor) -> torch.Tensor:
    first, (second, third) = SIZES
    return torch.clamp(x * first + second * third, max=NEVER).to(DTYPE)


def of_an_operator(x: torch.Tensor) -> torch.Tensor:
    return leak(doubled(x))


def nested(x: torch.Tensor) -> torch.Tensor:
    def inner(y):
        return [leak(row) for row in y]

    return torch.stack(inner(x))


def closed_over(factor):
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * factor

    return scaled


@pytest.mark.parametrize(
    "function",
    [plain, reaching, with_constants, nested, closed_over(1.5)],
    ids=lambda function: function.__name__,
)
def test_the_module_computes_the_same(function, tmp_path):
    assert torch.equal(run_carried(function), function(X))


def test_an_operator_is_carried_as_its_reference():
    assert torch.equal(run_carried(of_an_operator), leak(X * 2))


def run_carried(function):
    text = carry(function).text("What was carried.")
    assert "opwright" not in text
    space: dict[str, object] = {}
    exec(compile(text, "reference.py", "exec"), space)
    return space[function.__name__](X)


def test_what_stands_once_is_carried_once():
    text = carry(nested).text("What was carried.")
    assert text.count("def leak(") == 1
    assert text.index("def leak(") < text.index("def nested(")


def uses_a_tensor(x):
    return x * X


def uses_a_dict(x):
    return x * TABLE["a"]


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


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (uses_a_tensor, "it uses X, a Tensor, which"),
        (uses_a_dict, "it uses TABLE, a dict, which"),
        (uses_opwright, "it uses opwright, the module opwright, which"),
        (uses_what_is_remembered, "it uses remembered, a _lru_cache_wrapper, which"),
        (uses_nothing_known, "uses_nothing_known uses undefined, which is not defined"),
        (with_a_decorator(), r"still has the decorator torch.no_grad\(\), which would be lost"),
        (closed_over(X), "it uses factor, a Tensor, which"),
        (lambda x: x * 2, r"is not defined by `def`|the source of <lambda> cannot be read"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_what_cannot_be_carried_is_named(function, words):
    with pytest.raises(NotEjectable, match=words):
        carry(function)
