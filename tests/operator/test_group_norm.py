"""Group norm and what follows it: values and gradients against float64, at every size, layout and dtype."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.checking.accuracy import Comparison
from opwright.ir.program import Call, Kernel
from opwright.settings import Settings
from tests.suite.nights import mostly_at_night


def normalized(x: Tensor, groups: int, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.group_norm(x, groups, weight, bias)


def activated(x: Tensor, groups: int, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.silu(functional.group_norm(x, groups, weight, bias))


def in_residual(x: Tensor, groups: int, weight: Tensor, bias: Tensor) -> Tensor:
    """What is normalised is computed, and read again."""
    y = torch.tanh(x)
    return y + functional.group_norm(y, groups, weight, bias)


SHAPES = (
    ((3, 8, 5, 6), (2, 8, 1)),
    ((1, 8, 17, 3), (2,)),
    ((2, 12, 1, 33), (4,)),
    ((4, 24), (3,)),
    ((2, 6, 40), (6,)),
    ((2, 4, 3, 2, 5), (2,)),
    ((2, 8, 70, 65), (4,)),
)
CASES = [
    *((function, torch.float32, SHAPES[0][0], 2) for function in (normalized, in_residual)),
    *((activated, torch.float32, shape, groups) for shape, counts in SHAPES for groups in counts),
    *((activated, dtype, SHAPES[0][0], 2) for dtype in (torch.float64, torch.bfloat16)),
]
BY_DAY = [CASES[1], CASES[-1]]
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "row-major": lambda x: x,
    "channels last": lambda x: x.movedim(1, -1).contiguous().movedim(-1, 1),
    "every other": lambda x: torch.stack([x, x], -1)[..., 0],
    "expanded": lambda x: x[:, :, :1].expand(x.shape) if x.dim() > 3 else x,
}


def results(call: Callable[..., Tensor], x: Tensor, groups: int, cotangents: Tensor) -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    channels = [torch.randn(x.shape[1], generator=generator, dtype=torch.float64).to(x.dtype) for _ in range(2)]
    given = [each.detach().requires_grad_() for each in (x, *channels)]
    made = call(given[0], groups, *given[1:])
    return [made.detach(), *torch.autograd.grad(made, given, cotangents.to(x.dtype))]


@pytest.mark.parametrize(("function", "dtype", "shape", "groups"), mostly_at_night(CASES, BY_DAY))
def test_values_and_gradients(
    function: Callable[..., Tensor],
    dtype: torch.dtype,
    shape: tuple[int, ...],
    groups: int,
    settings_quick_by_day: Settings,
) -> None:
    operator = Operator(function, name=f"groups_{function.__name__}", settings=settings_quick_by_day)
    generator = torch.Generator().manual_seed(1)
    for layout in LAYOUTS.values():
        x = layout(torch.randn(shape, generator=generator).to(dtype))
        cotangents = layout(torch.randn(shape, generator=generator))
        mine, eager = (results(call, x, groups, cotangents) for call in (operator, function))
        assert operator.last_rung == "cpp"
        exact = results(function, x.double(), groups, cotangents.to(dtype))
        Comparison("result", mine, eager, exact, inputs=[x]).judge()


def test_it_is_one_kernel_forward_without_a_library_call(settings_quick_by_day: Settings) -> None:
    operator = Operator(activated, name="activated_groups", settings=settings_quick_by_day)
    x, weight, bias = (torch.randn(shape, requires_grad=True) for shape in ((4, 8, 5, 6), (8,), (8,)))
    derivation = operator._derive([x, 4, weight, bias], recording=True)
    assert derivation.backward is not None
    forward = [step for step in derivation.forward.steps if isinstance(step, Kernel | Call)]
    assert len(forward) == 1
    assert not any(isinstance(step, Call) for step in (*forward, *derivation.backward.steps))


@pytest.mark.nightly
def test_second_order(settings_quick_by_day: Settings) -> None:
    operator = Operator(activated, name="activated_groups", settings=settings_quick_by_day)
    found = []
    for call in (operator, activated):
        generator = torch.Generator().manual_seed(3)
        x, weight, bias = (
            torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
            for shape in ((2, 4, 3, 5), (4,), (4,))
        )
        (first,) = torch.autograd.grad(call(x, 2, weight, bias).square().sum(), x, create_graph=True)
        found.append([first.detach(), *torch.autograd.grad(first.sin().sum(), [x, weight, bias])])
    torch.testing.assert_close(*found)
