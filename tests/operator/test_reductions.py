"""Reductions and rows: values and gradients against float64, at every size and layout, never worse than twice eager."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.checking.accuracy import Comparison
from opwright.settings import Settings
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.built_together

Function = Callable[[Tensor], Tensor]

ROWS: dict[str, Function] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: functional.rms_norm(x, x.shape[-1:], eps=1e-6),
    "normalize": lambda x: functional.normalize(x, dim=-1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "scaled by the largest": lambda x: x / (1 + x.abs().amax(-1, keepdim=True)),
}
REDUCERS: dict[str, Function] = {
    "sum of all": lambda x: x.sum(),
    "mean of all": lambda x: (x * x).mean(),
    "sum of rows": lambda x: torch.tanh(x).sum(-1),
    "sum of columns": lambda x: torch.tanh(x).sum(0),
    "mean of the middle": lambda x: x.mean(1),
    "sum of all but the middle": lambda x: x.exp().sum((0, 2)),
    "sum of all but the last": lambda x: x.sum((0, 1)),
    "amax": lambda x: x.amax(-1),
    "amin of columns": lambda x: x.amin(0),
    "variance": lambda x: x.var(-1),
    "variance of columns": lambda x: x.var(0, correction=0),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "norm of order 3": lambda x: torch.linalg.vector_norm(x, 3, dim=(0, 1)),
    "product": lambda x: (1 + 0.01 * x).prod(-1),
    "two results": lambda x: torch.stack([x.sum(-1), x.amax(-1)]),
    "softmax of columns": lambda x: torch.softmax(x, 0),
}
BY_DAY = (
    *("softmax", "layer_norm"),
    *("sum of columns", "mean of the middle", "product", "two results"),
)
SHAPES = ((4, 3, 5), (2, 7, 130), (33, 2, 64), (3, 300, 17))
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "row-major": lambda x: x,
    "reversed": lambda x: x.permute(2, 1, 0).contiguous().permute(2, 1, 0),
    "every other": lambda x: torch.stack([x, x], -1)[..., 0],
    "expanded": lambda x: x[:, :1].expand(x.shape),
}


def assert_accurate(operator: Callable[[Tensor], Tensor], function: Function, x: Tensor) -> None:
    found = []
    for call, given in ((operator, x), (function, x), (function, x.double())):
        leaf = given.detach().requires_grad_()
        result = call(leaf)
        generator = torch.Generator().manual_seed(1)  # not the same along a row: its gradient would be rounding alone
        cotangents = torch.randn(result.shape, dtype=torch.float64, generator=generator).to(result.dtype)
        found.append([result.detach(), *torch.autograd.grad(result, leaf, cotangents)])
    Comparison("result", *found, inputs=[x]).judge()


@pytest.fixture(scope="module")
def settings() -> Settings:
    return quiet_settings()


@pytest.mark.parametrize("name", mostly_at_night([*ROWS, *REDUCERS], BY_DAY))
def test_values_and_gradients(name: str, settings_quick_by_day: Settings) -> None:
    function = {**ROWS, **REDUCERS}[name]

    def reference(x: Tensor) -> Tensor:
        return function(x)

    operator = Operator(reference, name="reduced", settings=settings_quick_by_day)
    generator = torch.Generator().manual_seed(len(name))
    for shape in SHAPES:
        for layout in LAYOUTS.values():
            x = layout(torch.randn(shape, generator=generator))
            assert_accurate(operator, function, x)
            assert operator.last_rung == "cpp"


@pytest.mark.parametrize(
    "name",
    mostly_at_night(REDUCERS, ("sum of all", "sum of columns")),
)
def test_pieces_and_tiles(name: str, settings: Settings) -> None:
    """Sizes at which rows are cut into pieces, columns into tiles, and both are left whole."""
    function = REDUCERS[name]

    def reference(x: Tensor) -> Tensor:
        return function(x)

    operator = Operator(reference, name="reduced", settings=settings)
    generator = torch.Generator().manual_seed(len(name))
    for shape in ((3, 70, 1700), (3000, 2, 40), (2, 3, 70_000), (41, 2, 3001)):
        for layout in ("row-major", "reversed"):
            assert_accurate(operator, function, LAYOUTS[layout](torch.randn(shape, generator=generator)))
            assert operator.last_rung == "cpp"


@pytest.mark.parametrize("length", [2, 7, 15, 16, 63, 64, 100, 513, 1000, 5000])
@pytest.mark.parametrize("kind", mostly_at_night(["elements", "costly values", "values"], by_day=2))
def test_sums_of_rows_are_rounded_once(kind: str, length: int, sums_of_rows: Mapping[str, Operator]) -> None:
    """Within an ulp in every row, where a sum in float32 from one end is several off."""
    x = torch.rand(512, length, generator=torch.Generator().manual_seed(length)) + 0.5
    values = {"elements": x, "values": x * x, "costly values": torch.exp(x)}[kind].double()
    exact = values.sum(-1, keepdim=True)
    found = sums_of_rows[kind](x)
    spacing = torch.ldexp(torch.ones_like(exact), torch.frexp(exact).exponent - 24)
    assert ((found - exact).abs() <= (1 if kind != "costly values" else 1.5) * spacing).all()


@pytest.fixture(scope="module")
def sums_of_rows(settings: Settings) -> Mapping[str, Operator]:
    """Each gives a whole row of its sum, so that the row is gone over twice."""

    def of_elements(x: Tensor) -> Tensor:
        return torch.copysign(x.sum(-1, keepdim=True), x)

    def of_values(x: Tensor) -> Tensor:
        return torch.copysign((x * x).sum(-1, keepdim=True), x)

    def of_costly_values(x: Tensor) -> Tensor:
        power = torch.exp(x)
        return torch.copysign(power.sum(-1, keepdim=True), power)

    named = {"elements": of_elements, "values": of_values, "costly values": of_costly_values}
    return {kind: Operator(function, name="sums", settings=settings) for kind, function in named.items()}


SHAPES_WITH_NOTHING = ((1, 3, 4), (3, 4, 1), (3, 1, 4), (1, 1, 1), (2, 2, 2))
NOTHING: dict[str, Callable[[Tensor], Tensor]] = {
    "columns": lambda x: torch.exp(x[1:]).sum(0),
    "inner columns": lambda x: torch.exp(x[:, 1:]).sum(1),
    "rows": lambda x: torch.exp(x[:, :, 1:]).sum(-1),
    "no rows": lambda x: torch.exp(x[1:]).sum(-1),
    "no columns": lambda x: torch.exp(x[:, :, 1:]).sum(0),
    "everything": lambda x: torch.exp(x[1:]).sum() + x[:, 1:].sum(),
    "whole rows": lambda x: torch.softmax(x[:, :, 1:], -1),
    "no whole rows": lambda x: torch.softmax(x[1:], -1),
    "norms": lambda x: torch.nn.functional.layer_norm(x[1:], x.shape[-1:]) * x[1:].mean(0),
    "products": lambda x: x[1:].prod(0) + torch.linalg.vector_norm(x[1:], dim=0),
}


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, that means of nothing are NaN
@pytest.mark.parametrize(
    ("name", "shape"),
    mostly_at_night(
        itertools.product(NOTHING, SHAPES_WITH_NOTHING),
        by_day=[("columns", (1, 3, 4)), ("rows", (3, 4, 1)), ("norms", (1, 3, 4))],
    ),
)
def test_reductions_over_nothing(name: str, shape: tuple[int, ...], settings_quick_by_day: Settings) -> None:
    """A slice of a tensor that has elements may have none."""
    function = NOTHING[name]

    def reference(x: Tensor) -> Tensor:
        return function(x)

    operator = Operator(reference, name="reduced", settings=settings_quick_by_day)
    found = []
    for call in (operator, reference):
        x = torch.linspace(-1, 1, math.prod(shape)).reshape(shape).requires_grad_()
        result = call(x)
        found.append([result.detach(), *torch.autograd.grad(result, x, torch.ones_like(result), allow_unused=True)])
    torch.testing.assert_close(*found, equal_nan=True)


def test_columns_of_a_constant(settings_quick_by_day: Settings) -> None:
    """Rounded numbers have a gradient of zero, summed here over the axis that was repeated."""

    def reference(x: Tensor) -> Tensor:
        return torch.trunc(x.repeat(2, 1))

    operator = Operator(reference, name="columns_of_a_constant", settings=settings_quick_by_day)
    x = torch.randn(1, 6, requires_grad=True)
    result = operator(x)
    assert operator.last_rung == "cpp"
    torch.testing.assert_close(result, reference(x))
    assert not torch.autograd.grad(result.sum(), x)[0].any()


@pytest.mark.parametrize("name", mostly_at_night(ROWS, ("layer_norm", "logsumexp")))
def test_a_whole_row_is_one_kernel_in_each_direction(name: str, settings: Settings) -> None:
    function = ROWS[name]

    def reference(x: Tensor) -> Tensor:
        return function(x)

    operator = Operator(reference, name="fused", settings=settings, samples=lambda _device, _dtype: [])
    x = torch.randn(6, 8, requires_grad=True)
    operator(x)
    derivation = operator._derive([x], recording=True)
    assert derivation.backward is not None
    for program in (derivation.forward, derivation.backward):
        assert [type(step).__name__ for step in program.steps if type(step).__name__ != "Number"] == ["Kernel"]


def test_nan_and_infinities_are_where_eager_has_them(settings: Settings) -> None:
    def reference(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return torch.softmax(x, -1), x.amax(-1), x.amin(0), x.sum(-1)

    operator = Operator(reference, name="special", settings=settings)
    x = torch.randn(5, 40)
    x[0, 3], x[1, 4], x[2, 5] = torch.nan, torch.inf, -torch.inf
    x[3] = -torch.inf
    x[4, 7] = -torch.nan
    for actual, expected in zip(operator(x), reference(x), strict=True):
        torch.testing.assert_close(actual, expected, equal_nan=True)
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize(
    "dtype", mostly_at_night([torch.uint8, torch.bool, torch.int32, torch.int64, torch.float64], by_day=2)
)
def test_other_dtypes(dtype: torch.dtype, settings_quick_by_day: Settings) -> None:
    def reference(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        return x.sum(-1), x.sum(0), x.any(-1), x.all(0), x.amax(-1), x.amin(0)

    operator = Operator(reference, name="other", settings=settings_quick_by_day)
    x = (torch.randn(9, 70) * 3).abs().to(dtype)
    for actual, expected in zip(operator(x), reference(x), strict=True):
        torch.testing.assert_close(actual, expected)
    assert operator.last_rung == "cpp"


def test_ten_million_elements(settings: Settings) -> None:
    def reference(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x.sum(), (x * x).mean(), x.var()

    operator = Operator(reference, name="many", settings=settings)
    x = torch.rand(10_000_000, generator=torch.Generator().manual_seed(0)) + 0.5
    Comparison("result", operator(x), reference(x), reference(x.double()), inputs=[x]).judge()
    assert operator.last_rung == "cpp"


def test_the_result_does_not_depend_on_the_number_of_threads(settings_quick_by_day: Settings) -> None:
    def reference(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return x.sum(), x.sum(0), x.sum(-1), functional.layer_norm(x, x.shape[-1:])

    operator = Operator(reference, name="threads", settings=settings_quick_by_day)
    x = torch.randn(700, 900, generator=torch.Generator().manual_seed(0))
    threads = torch.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3, 7):
            torch.set_num_threads(count)
            found.append(operator(x))
    finally:
        torch.set_num_threads(threads)
    assert operator.last_rung == "cpp"
    for results in found[1:]:
        assert all(torch.equal(result, first) for result, first in zip(results, found[0], strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1), (2, 3)])
def test_sums_of_negative_zeros_are_zeros_without_a_sign(shape, dtype):
    """Also along dimensions of one element."""

    def summed(x):
        sums = [x.sum(), x.sum(0), x.sum(-1), x.sum(0, keepdim=True), x.mean(0), x.unsqueeze(-1).sum(-1)]
        return tuple(torch.view_as_real(each) if each.is_complex() else each for each in sums)

    operator = Operator(summed, name="sums_of_negative_zeros")
    x = torch.full(shape, -0.0).to(dtype)
    x = torch.complex(x.real, x.real) if dtype.is_complex else x
    for actual, expected in zip(operator(x), summed(x), strict=True):
        assert torch.equal(actual.signbit(), expected.signbit())
    assert operator.last_rung == "cpp"
