"""What torch refuses for its values is refused by operators too; limits of powers and norms are torch's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator


def one_hot(x: Tensor) -> Tensor:
    return functional.one_hot(x, 3) * 2


def quantiles(q: Tensor) -> Tensor:
    return torch.quantile(torch.arange(5.0), q) * 2


def nearest(q: Tensor) -> Tensor:
    return torch.arange(5.0).nanquantile(q, interpolation="nearest") * 2


def cross_entropy(x: Tensor) -> Tensor:
    return functional.binary_cross_entropy(x, torch.full_like(x, 0.25))


def cross_entropy_of_targets(y: Tensor) -> Tensor:
    return functional.binary_cross_entropy(torch.full_like(y, 0.25), y)


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [
        (one_hot, [0, 2, 1], [[0, 3, 1], [0, -1, 1]]),
        (quantiles, [0.0, 0.3, 1.0], [[0.0, 1.01], [-0.1]]),
        (nearest, [0.0, 0.3, 1.0], [[0.0, 1.01], [-0.1]]),
        (cross_entropy, [0.25, 0.0, 1.0], [[0.25, 1.5, 0.5], [-0.5, 0.5, 0.5], [0.5, float("nan"), 0.5]]),
        (cross_entropy_of_targets, [0.25, 0.0, 1.0], [[0.25, 1.5, 0.5], [-0.5, 0.5, 0.5], [0.5, float("nan"), 0.5]]),
    ],
)
def test_values_are_refused_as_in_torch(
    function: Callable[[Tensor], Tensor], right: list[float], wrong: list[list[float]]
) -> None:
    operator = Operator(function, name=f"tests::checked_{function.__name__}")
    taken = torch.tensor(right)
    for values in wrong:
        torch.testing.assert_close(operator(taken), function(taken))
        assert operator.last_rung == "cpp"
        with pytest.raises(RuntimeError) as expected:
            function(torch.tensor(values))
        with pytest.raises(RuntimeError) as refused:
            operator(torch.tensor(values))
        assert str(refused.value) == str(expected.value)


def test_a_complex_number_to_the_power_of_zero_is_one() -> None:
    operator = Operator(lambda x: x**0 + x, name="tests::to_the_power_of_zero")
    x = torch.tensor([0, 1j, 2 - 1j], dtype=torch.complex64)
    torch.testing.assert_close(operator(x), x + 1)
    assert operator.last_rung == "cpp"


@pytest.mark.falls_back
def test_a_count_of_what_is_not_zero_requires_a_gradient_as_in_torch() -> None:
    operator = Operator(lambda x: torch.linalg.vector_norm(x, 0, dim=0) * 2, name="tests::counted")
    x = torch.randn(3, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(operator(x).sum(), x, allow_unused=True)
    assert gradient is None
    torch.testing.assert_close(operator(x.detach()), torch.full((4,), 6.0))
    assert operator.last_rung == "cpp"


def masked_fill(x: Tensor, value: Tensor) -> Tensor:
    return (x * 1).masked_fill(x > 1, value) * 1


def index_fill(x: Tensor, value: Tensor) -> Tensor:
    return torch.index_fill(x * 1, 0, torch.tensor([1, 2]), value) * 1


@pytest.mark.parametrize("function", [masked_fill, index_fill])
@pytest.mark.parametrize(
    ("dtype", "given", "right", "wrong"),
    [
        (torch.uint8, torch.int32, [7, -5], [300, -300]),
        (torch.int8, torch.float32, [1.5, -100.0], [200.0, float("nan"), float("inf")]),
        (torch.int64, torch.float16, [1.0], [float("inf"), float("nan")]),
        (torch.float16, torch.float32, [1.5, float("inf"), float("nan")], [1e5]),
    ],
)
def test_a_tensor_is_filled_with_values_that_its_dtype_holds(
    function: Callable[[Tensor, Tensor], Tensor],
    dtype: torch.dtype,
    given: torch.dtype,
    right: list[float],
    wrong: list[float],
) -> None:
    operator = Operator(function, name=f"tests::{function.__name__}_{dtype}_{given}".replace("torch.", ""))
    x = torch.arange(4).to(dtype)
    for number in right:
        value = torch.tensor(number, dtype=given)
        torch.testing.assert_close(operator(x, value), function(x, value), equal_nan=True)
        assert operator.last_rung == "cpp"
    for number in wrong:
        with pytest.raises(RuntimeError, match="without overflow"):
            operator(x, torch.tensor(number, dtype=given))


@pytest.mark.falls_back
@pytest.mark.parametrize(("exponent", "words"), [(300, "without overflow"), (-2, "negative"), (-(2**40), "negative")])
def test_an_exponent_that_integers_do_not_take_is_refused_as_in_torch(exponent: int, words: str) -> None:
    operator = Operator(lambda x: x**exponent * 2, name="tests::a_refused_exponent")
    with pytest.raises(RuntimeError, match=words):
        operator(torch.arange(4, dtype=torch.uint8))
