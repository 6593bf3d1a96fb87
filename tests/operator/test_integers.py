"""Ints that change from call to call: one kernel for all values where they are computed with, else one for each."""

import pytest
import torch
from torch import Tensor

import opwright
from tests.operator.against_eager import assert_as_eager, random, variants
from tests.suite.nights import mostly_at_night

EXTREMES = (1, 2, -5, 0, 7, 2**53 + 1, -(2**63), 2**63 - 1)


@pytest.fixture(autouse=True)
def without_tape(monkeypatch):
    monkeypatch.setenv("OPWRIGHT_TAPE", "off")  # which takes no numbers


def adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor, step: int, rate: float) -> tuple[Tensor, Tensor, Tensor]:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    scaled = (v / (1 - 0.999**step)) ** 0.5 + 1e-8
    return p - rate / (1 - 0.9**step) * m / scaled, m, v


def test_a_step_counter_and_a_rate_that_change_have_two_kernels():
    operator = opwright.operator(adam)
    tensors = [random(5, seed=seed, gradient=False).abs() for seed in range(4)]
    exact = [tensor.double() for tensor in tensors]
    for step in range(1, 1001):
        rate = 1e-3 * (1 - step / 2000)
        found = operator(*tensors, step, rate)
        assert operator.last_rung == "cpp"
        for result, expected in zip(found, adam(*exact, step, rate), strict=True):
            torch.testing.assert_close(result.double(), expected, rtol=2e-6, atol=1e-7)
    assert variants(operator) <= 3


def each_use(x: Tensor, k: int) -> tuple[Tensor, ...]:
    mask = x > 1
    return (
        x * k, k + x, x - k, k - x, x / k, x.add(x, alpha=k), torch.addcmul(x, x, x, value=k),
        x == k, x < k, x >= k, torch.where(mask, k, x), x.masked_fill(mask, k), x.clamp(min=k),
        torch.full((2,), k), torch.full_like(x, k), x.sum() * k, mask * k,
    )  # fmt: skip


def on_bits(x: Tensor, k: int) -> tuple[Tensor, ...]:
    return x & k, x | k, x ^ k, x << (k % 8), x >> (k % 5), x * (k // 3), x * (k % -7), x * -k, x * abs(k)


def on_truth(x: Tensor, k: int) -> tuple[Tensor, ...]:
    return x * k, x + k, x == k, torch.where(x, k, x), x / k


def outcome(function, *arguments):
    """What it returns, or which error it raises."""
    try:
        return function(*arguments)
    except (OverflowError, RuntimeError) as error:
        return str(error)


USES = [
    (each_use, torch.int64, EXTREMES),
    (each_use, torch.float16, (1, 2, -5, 0, 60000)),
    (on_bits, torch.int64, (1, 2, -5, 12, 2**40 + 1)),
    (on_truth, torch.bool, EXTREMES),
    (each_use, torch.int32, (1, 2, -5, 0, 2**31 - 1)),
    (each_use, torch.float32, EXTREMES),
]


@pytest.mark.parametrize(
    ("reference", "dtype", "values"),
    mostly_at_night(USES, by_day=4),
    ids=lambda given: getattr(given, "__name__", None),
)
def test_a_kernel_computes_with_an_integer_as_python_does(reference, dtype, values):
    operator = opwright.operator(reference)
    x = torch.tensor([1, 0, 3, 77]).to(dtype)
    for value in values:
        torch.testing.assert_close(operator(x, value), reference(x, value), equal_nan=True)
        assert operator.last_rung == "cpp"
    assert variants(operator) <= (2 if reference is not on_bits else 3)


def overflowing(x: Tensor, k: int) -> Tensor:
    return x * (2 * k + 1)


@pytest.mark.falls_back
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_what_needs_more_than_64_bits_is_what_eager_makes_of_it(dtype):
    operator = opwright.operator(overflowing)
    x = torch.tensor([1, -3], dtype=dtype)
    for value in (1, 2, -5, 2**62 - 1, -(2**62), 2**62, 2**63 - 1, -(2**63)):
        found, expected = outcome(operator, x, value), outcome(overflowing, x, value)
        assert type(found) is type(expected)
        assert torch.equal(found, expected) if isinstance(expected, Tensor) else found == expected


def chosen(x: Tensor, step: int) -> Tensor:
    return x.square() if step > 2 else x * 3


def scaled(x: Tensor, k: int) -> Tensor:
    return torch.tanh(x * k) / (k + 0.5) + x * x


@pytest.mark.parametrize("reference", mostly_at_night([scaled, chosen], by_day=1))
def test_gradients_of_both_orders_take_the_integer_of_their_call(reference):
    operator = opwright.operator(reference)
    for value in (1, 4, 2, 9):
        assert_as_eager(operator, random(5), value)
    assert variants(operator) <= 3


def wide(x: Tensor, width: int, step: int, rate: float) -> Tensor:
    return x[:, :width].sum(dim=1) * width * rate + step


def test_a_size_stays_a_constant_beside_numbers_that_do_not():
    operator = opwright.operator(wide)
    x = random(3, 6, gradient=False)
    for step in range(1, 9):
        given = (x, 2 + step % 3, step, 0.5 * step)
        torch.testing.assert_close(operator(*given), wide(*given))
        assert operator.last_rung == "cpp"
    assert variants(operator) <= 5


def powered(x: Tensor, exponent: int) -> Tensor:
    return x**exponent


def test_exponents_with_ways_of_their_own_are_constants_and_the_others_are_not():
    operator = opwright.operator(powered)
    x = random(7, gradient=False).abs() + 0.5
    for exponent in (2, 3, 5, 7, 3, 11, -4, 2):
        torch.testing.assert_close(operator(x, exponent), x**exponent, rtol=1e-5, atol=0)
    has_sign = torch.__version__ < (2, 12)  # PyTorch 2.11 asks for the sign of an exponent, 2.13 does not
    assert variants(operator) == (4 if has_sign else 3)


def by_text(x: Tensor, k: int) -> Tensor:
    return x * 2 if f"{k}" == "3" else x * 3


def by_table(x: Tensor, k: int) -> Tensor:
    return x * {1: 5, 3: 7}.get(k, k)


def rolled(x: Tensor, k: int) -> Tensor:
    return x.roll(k)


def listed(x: Tensor, given: dict[str, int]) -> Tensor:
    return x * given["k"] + given["k"]


@pytest.mark.parametrize("reference", mostly_at_night([by_text, rolled, by_table, listed], by_day=2))
def test_an_integer_whose_value_is_needed_is_right(reference):
    operator = opwright.operator(reference)
    x = random(4, gradient=False)
    for value in (1, 3):
        given = {"k": value} if reference is listed else value
        torch.testing.assert_close(operator(x, given), reference(x, given))
        assert operator.last_rung == "cpp"


def test_a_bool_is_no_integer():
    operator = opwright.operator(scaled)
    for value in (True, 1, False, 2, True):
        torch.testing.assert_close(operator(random(4), value), scaled(random(4), value))
