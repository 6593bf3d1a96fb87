"""Functions that validate values have kernels, which leave invalid ones to the function: it raises its own error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from opwright.api.operator import Operator
from opwright.errors import UntraceableReference
from opwright.tracing.recording.validation import answer_that_does_not_raise
from tests.operator.validating import (
    by_a_helper,
    by_a_returned_truth,
    by_a_truth,
    by_hand,
    divergence,
    goes_on,
    goes_on_by_a_returned_truth,
    keeps_the_truth,
    looks_and_raises,
    notes_and_raises,
    of_a_gamma,
    of_a_normal,
    of_a_uniform,
    of_categories,
    of_vectors,
    raises_both_ways,
)
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.falls_back,  # for invalid values
    pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning"),  # torch.func.jvp's own
]


@pytest.fixture(autouse=True)
def _validating(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is until the compiler is imported, which turns it off for the process."""
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)


X, POSITIVE, LOWER = torch.tensor([0.5, 1.5]), torch.tensor([2.0, 3.0]), torch.tensor([[1.0, 0.0], [0.5, 2.0]])
NAN, CHOSEN = torch.tensor([1.0, float("nan")]), torch.tensor([1, 0])
Case = tuple[Callable[..., Tensor], Sequence[Tensor], Sequence[Tensor]]
CASES: dict[str, Case] = {
    "by hand": (by_hand, (X,), (NAN,)),
    "by an assertion": (by_hand, (X,), (X - 200,)),
    "by a helper": (by_a_helper, (X,), (-X,)),
    "by a truth": (by_a_truth, (X,), (X + 200,)),
    "by the other truth": (by_a_truth, (X,), (X - 200,)),
    "by a returned truth": (by_a_returned_truth, (X,), (-X,)),
    "a normal distribution": (of_a_normal, (X, POSITIVE), (X, -POSITIVE)),
    "a sample of it": (of_a_normal, (X, POSITIVE), (NAN, POSITIVE)),
    "a uniform distribution": (of_a_uniform, (X, POSITIVE), (X - 9, POSITIVE)),
    "a gamma distribution": (of_a_gamma, (X, POSITIVE), (-X, POSITIVE)),
    "categories": (of_categories, (X.expand(2, 2), CHOSEN), (NAN.expand(2, 2), CHOSEN)),
    "vectors": (of_vectors, (X.expand(3, 2), LOWER), (X.expand(3, 2), -LOWER)),
    "a divergence": (divergence, (X, POSITIVE), (X, -POSITIVE)),
}


def raised(call: Callable[..., Any], *arguments: Tensor) -> tuple[type, str]:
    try:
        call(*arguments)
    except Exception as error:
        return type(error), str(error)
    raise AssertionError("nothing was raised")


BY_DAY = ("by hand", "by a helper", "by a truth", "by a returned truth", "a normal distribution", "categories")


@pytest.mark.parametrize("case", mostly_at_night(CASES, BY_DAY))
def test_valid_values_have_kernels_and_invalid_ones_raise(case: str) -> None:
    function, valid, invalid = CASES[case]
    operator = Operator(function, name=f"validates_{case.replace(' ', '_')}")
    for _ in range(2):
        given = [tensor.clone().requires_grad_(tensor.is_floating_point()) for tensor in valid]
        leaves = [tensor for tensor in given if tensor.requires_grad]
        found, expected = operator(*given), function(*given)
        assert operator.last_rung == "cpp"
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            torch.autograd.grad(found.sum(), leaves, materialize_grads=True),
            torch.autograd.grad(expected.sum(), leaves, materialize_grads=True),
        )
        assert raised(operator, *invalid) == raised(function, *invalid)
        assert raised(operator, *invalid) == raised(function, *invalid)


@pytest.mark.parametrize("transform", mostly_at_night([torch.func.grad, torch.func.hessian], by_day=1))
def test_transforms_and_fake_tensors(transform: Callable[..., Any]) -> None:
    operator, x = Operator(by_hand, name="validates_under_transforms"), torch.rand(3, 2)
    mine, eager = (transform(lambda y, f=f: f(y).sum()) for f in (operator, by_hand))
    torch.testing.assert_close(mine(x[0]), eager(x[0]))
    assert raised(mine, NAN) == raised(eager, NAN)
    assert raised(torch.vmap(operator), x)[0] is raised(torch.vmap(by_hand), x)[0] is RuntimeError
    for environment in (None, ShapeEnv()):
        with torch._subclasses.FakeTensorMode(shape_env=environment):
            assert operator.overload(torch.empty(3, 2)).shape == (3, 2)


@pytest.mark.parametrize(
    "function",
    [goes_on, goes_on_by_a_returned_truth, keeps_the_truth, raises_both_ways, notes_and_raises, looks_and_raises],
)
def test_what_does_more_than_raise_is_left_to_the_function(function: Callable[[Tensor], Tensor]) -> None:
    operator = Operator(function, name=f"validates_not_{function.__name__}")
    with pytest.raises(UntraceableReference, match="looks at the values of a tensor"):
        operator.on("cpp")(torch.ones(3))


def test_a_frame_that_asks_nothing_has_no_answer() -> None:
    assert answer_that_does_not_raise(None) is None
    assert answer_that_does_not_raise(__import__("sys")._getframe()) is None
