"""Short rows, sixteen at a time: what a trace with rows of 16 built serves rows of every other length too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright import Operator, Sample
from opwright.checking.accuracy import Comparison
from tests.quiet_settings import quiet_settings
from tests.suite.built_together import build_together
from tests.suite.nights import mostly_at_night

Given = tuple[Tensor, ...]
Shapes = tuple[tuple[int, ...], ...]


def of_rows(x: Tensor, mask: Tensor, weight: Tensor, bias: Tensor) -> Given:
    log = torch.log_softmax(x.masked_fill(mask, -9.0), -1)
    return torch.softmax(x, -1), log, functional.layer_norm(x, x.shape[-1:], weight, bias)


def of_classes(x: Tensor, target: Tensor) -> Given:
    return functional.cross_entropy(x, target, label_smoothing=0.1), x.argmax(-1), (x > 1).any(-1)


def of_two_axes(x: Tensor) -> Given:
    return ((x - x.mean((-2, -1), keepdim=True)) * torch.logsumexp(x, (-2, -1), keepdim=True),)


@dataclass(frozen=True)
class Case:
    """A function, its other arguments, the shape that it is traced with, and those that it is called with.

    Those have no full sixteen rows, some that are left, and enough for sums of columns in lanes; rows of 130 are long.
    """

    function: Callable[..., Given]
    others: Callable[[Tensor], Given]
    traced: tuple[int, ...]
    shapes: Shapes
    dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.bfloat16)

    def given(self, shape: tuple[int, ...], dtype: torch.dtype) -> Given:
        x = (2 * torch.randn(shape, generator=torch.Generator().manual_seed(5))).to(dtype)
        return (x, *self.others(x))

    def operator(self, dtype: torch.dtype) -> Operator:
        return Operator(
            self.function,
            name=f"lanes_{self.function.__name__}_{str(dtype)[6:]}",
            samples=lambda *_: [Sample(self.given(self.traced, dtype))],
            settings=replace(quiet_settings(optimized=False), tape="off"),
        )


SHAPES = ((15, 16), (16, 33), (17, 9), (40, 16), (67, 9), (64, 40), (40, 130), (70, 3), (9, 47), (3, 63), (2, 81))
CASES = (
    Case(
        of_rows,
        lambda x: (x.detach() * 7 % 2 > 1.4, torch.linspace(1, 2, x.shape[1]).to(x), torch.ones_like(x[0])),
        (40, 16),
        SHAPES,
    ),
    Case(of_classes, lambda x: (torch.arange(len(x)) * 5 % x.shape[1],), (40, 16), SHAPES),
    Case(of_two_axes, lambda _: (), (40, 4, 9), ((40, 4, 9), (17, 3, 7), (2, 4, 9), (20, 13, 10)), (torch.float32,)),
)
LAYOUTS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: x,
    lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
    lambda x: torch.cat((x, x), -1)[..., ::2],
    lambda x: x[:1].expand(x.shape),
)


def _run(call: Callable[..., Any], given: Given, dtype: torch.dtype | None = None) -> list[Tensor]:
    """Results, and gradients of all floating-point arguments."""
    own = [each.to(dtype) if dtype and each.is_floating_point() else each for each in given]
    own = [each.detach().requires_grad_(each.is_floating_point()) for each in own]
    results = call(*own)
    flowing = [each for each in results if each.requires_grad]
    cotangents = [torch.linspace(1, 3, each.numel(), dtype=each.dtype).reshape(each.shape) for each in flowing]
    leaves = [each for each in own if each.requires_grad]
    return [*(each.detach() for each in results), *torch.autograd.grad(flowing, leaves, cotangents)]


KINDS = [(case, dtype) for case in CASES for dtype in case.dtypes]
BY_DAY = KINDS[:3:2]
OPERATORS = {(case.function, dtype): case.operator(dtype) for case, dtype in KINDS}


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_together(*(lambda c=c, d=d: _run(OPERATORS[c.function, d], c.given(c.traced, d)) for c, d in BY_DAY))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("case", "dtype"),
    mostly_at_night(KINDS, BY_DAY),
    ids=lambda each: each.function.__name__ if isinstance(each, Case) else str(each),
)
def test_results_and_gradients_are_those_of_float64(case: Case, dtype: torch.dtype) -> None:
    operator = OPERATORS[case.function, dtype]
    _run(operator, case.given(case.traced, dtype))
    assert dtype is not torch.float32 or "in_lanes(" in operator.source("cpp")
    for number, shape in enumerate(case.shapes):
        x, *others = case.given(shape, dtype)
        for layout in (LAYOUTS[number % 4], LAYOUTS[(number + 1) % 4]):
            given = (layout(x), *others)
            mine, eager = _run(operator, given), _run(case.function, given)
            exact = _run(case.function, given, torch.float64)
            assert operator.last_rung == "cpp"
            Comparison(case.function.__name__, mine, eager, exact, inputs=[x]).judge()
