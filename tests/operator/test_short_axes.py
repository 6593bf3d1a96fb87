"""Short innermost axes: what is written out for the sizes of the first call is right for these and for all others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.checking.accuracy import Comparison
from opwright.settings import Settings
from tests.suite.nights import mostly_at_night

Function = Callable[[Tensor], Tensor]


def distances(x: Tensor) -> Tensor:
    difference = x[:, None] - x[None, :]
    return (difference * difference).sum(-1)


def rotated(x: Tensor) -> Tensor:
    """Every component depends on others."""
    return torch.stack([x[..., 1] * x[..., 0], -x[..., 0]], -1) * x.exp().sum(-1, keepdim=True)


FUNCTIONS: dict[str, Function] = {
    "energy": lambda x: torch.exp(-distances(x) / x.shape[-1]).sum(),
    "distances": distances,
    "softmax": lambda x: torch.softmax(x, -1),
    "normalized": lambda x: x / (1 + (x * x).sum(-1, keepdim=True)),
    "centred": lambda x: x - x.mean(0),
    "sum of columns": lambda x: torch.tanh(x).sum(0),
    "largest of columns": lambda x: x.amax(0) * x.amin(-1).sum(),
    "product": lambda x: (1 + 0.1 * x).prod(-1),
    "rotated": rotated,
    "joined": lambda x: torch.cat([torch.sin(x), x * x.sum(-1, keepdim=True)], -1),
    "transposed": lambda x: (x * x[..., :1]).mT * 2,
    "some of them": lambda x: x[..., 1:] * x[..., :-1] * x[..., :1],
    "any": lambda x: torch.where((x > 1).any(-1, keepdim=True), x, x * 2),
}
TRACED_AND_CALLED = {
    "long, then short": ("energy", [(6, 40), (40, 3), (300, 2), (3, 700)]),
    "four": ("rotated", [(10, 4), (41, 4), (4, 4), (5, 6)]),
    "two": ("softmax", [(11, 2), (300, 2), (9, 3), (2, 2)]),
    "long, then short, in columns": ("centred", [(6, 40), (40, 3), (3, 700)]),
    "three dimensions": ("joined", [(3, 11, 2), (2, 40, 2), (2, 2, 2), (3, 5, 3), (4, 6, 9)]),
    "columns of three dimensions": ("sum of columns", [(2, 31, 3), (70, 31, 3), (31, 2, 3), (4, 6, 9)]),
}
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "row-major": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "every other": lambda x: torch.stack([x, x], -1)[..., 0],
    "of wider rows": lambda x: torch.cat([x, x], -1)[..., 1 : 1 + x.shape[-1]],
    "expanded": lambda x: x[:1].expand(x.shape),
}


def results(call: Function, x: Tensor, order: int) -> list[Tensor]:
    """The result, its gradient, and the gradient of that if the second order is asked for."""
    leaf = x.detach().requires_grad_()
    result = call(leaf)
    cotangents = torch.randn(result.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    (first,) = torch.autograd.grad(result, leaf, cotangents.to(result.dtype), create_graph=order > 1)
    found = [result.detach(), first.detach()]
    return [*found, *torch.autograd.grad((first * first).sum(), leaf)] if order > 1 else found


def assert_right(operator: Operator, function: Function, x: Tensor, order: int = 1) -> None:
    found, expected = results(operator, x, order), results(function, x, order)
    assert operator.last_rung == "cpp"
    if x.dtype is torch.float64:
        for actual, eager in zip(found, expected, strict=True):
            torch.testing.assert_close(actual, eager, rtol=1e-9, atol=1e-11)
    else:
        Comparison("result", found, expected, results(function, x.double(), order), inputs=[x]).judge()


OF_SECOND_ORDER = ("energy", "rotated")


@pytest.mark.parametrize(
    ("name", "order"),
    mostly_at_night(
        [*((name, 1) for name in FUNCTIONS), *((name, 2) for name in OF_SECOND_ORDER)], by_day=[("rotated", 1)]
    ),
)
def test_other_sizes_and_strides(name: str, order: int, settings_quick_by_day: Settings) -> None:
    function = FUNCTIONS[name]

    def reference(x: Tensor) -> Tensor:
        return function(x)

    operator = Operator(reference, name="short", settings=settings_quick_by_day)
    generator = torch.Generator().manual_seed(len(name))
    for shape in ((9, 3), (700, 3), (9, 2), (5, 7), (40, 130), (2, 2), (3, 3)):
        for layout in LAYOUTS.values():
            assert_right(operator, reference, layout(torch.randn(shape, generator=generator)), order)


@pytest.mark.parametrize("first", mostly_at_night(TRACED_AND_CALLED, by_day=[*TRACED_AND_CALLED][::2]))
def test_sizes_of_the_first_call(first: str, settings_quick_by_day: Settings) -> None:
    name, shapes = TRACED_AND_CALLED[first]
    function = FUNCTIONS[name]

    def reference(x: Tensor) -> Tensor:
        return function(x)

    operator = Operator(reference, name="short", settings=settings_quick_by_day)
    generator = torch.Generator().manual_seed(len(name))
    for shape in shapes:
        assert_right(operator, reference, torch.randn(shape, generator=generator))


@pytest.mark.parametrize("dtype", mostly_at_night([torch.bfloat16, torch.float64], by_day=1))
@pytest.mark.parametrize("name", mostly_at_night(["rotated", "energy"], by_day=1))
def test_dtypes(name: str, dtype: torch.dtype, settings_quick_by_day: Settings) -> None:
    function = FUNCTIONS[name]

    def reference(x: Tensor) -> Tensor:
        return function(x)

    operator = Operator(reference, name="short", settings=settings_quick_by_day)
    generator = torch.Generator().manual_seed(len(name))
    for shape in ((9, 3), (400, 3), (9, 2)):
        x = torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
        assert_right(operator, reference, x)
        assert_right(operator, reference, LAYOUTS["transposed"](x))


@pytest.mark.parametrize("dtype", mostly_at_night([torch.int64, torch.bool, torch.complex64, torch.uint8], by_day=3))
def test_other_numbers(dtype: torch.dtype, settings_quick_by_day: Settings) -> None:
    def reference(x: Tensor, y: Tensor) -> Tensor:
        return torch.stack([x[:, 0] * y, x[:, 1] * x[:, 2]], -1)

    operator = Operator(reference, name="short", settings=settings_quick_by_day)
    for rows, columns in ((9, 3), (500, 3), (8, 6)):
        x = torch.randint(0, 2, (rows, columns)).to(dtype)
        y = torch.randint(0, 2, (rows,)).to(dtype)
        for given in (x, x.mT.contiguous().mT):
            torch.testing.assert_close(operator(given, y), reference(given, y))
            assert operator.last_rung == "cpp"


def test_a_size_of_one_and_nothing(settings_quick_by_day: Settings) -> None:
    def reference(x: Tensor) -> Tensor:
        return (x[1:, None] * x[None, 1:]).sum(-1)

    operator = Operator(reference, name="short", settings=settings_quick_by_day)
    for shape in ((6, 3), (1, 3), (6, 1), (2, 3), (1, 1)):
        x = torch.randn(shape)
        torch.testing.assert_close(operator(x), reference(x))


def test_a_sum_of_negative_zeros_is_zero(settings_quick_by_day: Settings) -> None:
    def reference(x: Tensor) -> Tensor:
        return 1 / x.sum(-1)

    operator = Operator(reference, name="short", settings=settings_quick_by_day)
    x = torch.full((9, 3), -0.0)
    torch.testing.assert_close(operator(x), reference(x))
