"""Operations that stay one library call: values, gradients of both orders, dtypes and layouts as in eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.checking.tolerance import tolerance
from opwright.ir.program import Call
from opwright.samples import Sample
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.built_together

PADS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "1": ((2, 3, 5), (2, 1)),
    "2": ((2, 3, 5, 6), (2, 1, 0, 3)),
    "3": ((2, 3, 4, 5, 6), (1, 2, 3, 0, 2, 1)),
}


def padding(mode: str, pad: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    def padded(x: Tensor) -> Tensor:
        return functional.pad(x.sin(), pad, mode=mode) * 2.0

    return padded


KINDS = [
    (torch.float32, "strided"),
    (torch.float64, "contiguous"),
    (torch.float32, "contiguous"),
    (torch.float64, "strided"),
]


@pytest.fixture(params=[(mode, rank) for mode in ("reflect", "replicate") for rank in PADS], ids="_".join)
def case(request: pytest.FixtureRequest) -> tuple[Callable[[Tensor], Tensor], Operator, tuple[int, ...]]:
    mode, rank = request.param
    shape, pad = PADS[rank]
    function = padding(mode, pad)
    samples = lambda device, dtype: [Sample((torch.rand(shape, dtype=dtype),))]  # noqa: E731
    return function, Operator(function, name=f"whole_{mode}_{rank}", samples=samples), shape


def gradients(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    leaf = x.detach().requires_grad_()
    y = function(leaf)
    (first,) = torch.autograd.grad((y * y).sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), leaf)
    return y.detach(), first.detach(), second


@pytest.mark.parametrize(("dtype", "layout"), mostly_at_night(KINDS, by_day=1))
def test_as_in_eager(
    case: tuple[Callable[[Tensor], Tensor], Operator, tuple[int, ...]], dtype: torch.dtype, layout: str
) -> None:
    function, operator, shape = case
    x = torch.rand(shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    x = x if layout == "contiguous" else x.transpose(0, 1).contiguous().transpose(0, 1)
    for found, expected in zip(gradients(operator, x), gradients(function, x), strict=True):
        allowed = tolerance(dtype, 16) * expected.abs().max().item()
        torch.testing.assert_close(found, expected, rtol=0, atol=allowed)
    assert operator.last_rung == "cpp"
    with torch.no_grad():
        torch.testing.assert_close(operator(x), function(x))


def test_one_call_each_way(case: tuple[Callable[[Tensor], Tensor], Operator, tuple[int, ...]]) -> None:
    derivation = case[1].derivation()
    assert derivation.backward is not None
    for program in (derivation.forward, derivation.backward):
        assert [step.function[:12] for step in program.steps if isinstance(step, Call)] in (
            ["aten::reflec"],
            ["aten::replic"],
        )
