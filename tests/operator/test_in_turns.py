"""What is taken in turns, `x[..., ::2]` and `x[..., 1::2]`, and stacked again: one kernel, as by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.ir.program import Kernel
from opwright.passes.order import optimize
from tests.derived import lowered, lowered_joint, specs_of
from tests.operator.against_eager import assert_as_eager, random
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    return x * cos + torch.stack((-odd, even), dim=-1).flatten(-2) * sin


def of_three(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    turned = torch.stack((x[..., 2::3], x[..., ::3].sin(), x[..., 1::3]), dim=-1).reshape(x.shape)
    return turned * cos + x * sin


def without_the_first(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    odd = x[..., 1::2]
    return torch.stack((odd * odd, odd.exp()), dim=-1).flatten(-2) * cos - sin


def rows(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.stack((-x[1::2], x[::2]), dim=1).flatten(0, 1) * cos + x * sin


def three_of_four(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """A slice that ends before the tensor does."""
    found = torch.stack((x[..., ::4], x[..., 1::4], x[..., 2::4], x[..., 3::4]), -1).flatten(-2)
    return found[..., :-1:2].sum() + cos * x + sin


def of_what_is_joined(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """What is stacked is a view of what is joined."""
    both = torch.cat((x, cos * x.sin()), -1)
    return torch.stack((-both[..., 1::2], both[..., ::2]), -1).flatten(-2)[..., : x.shape[-1]] + sin


def numbers(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Numbers that are counted, not read, in turns."""
    number = torch.arange(x.shape[-1]) % 5
    place = torch.arange(x.shape[-1])
    turned = torch.stack((x[..., ::2] * place[::2], x[..., 1::2] - place[1::2]), -1).flatten(-2)
    return turned * cos + number * sin + (place[::2] - x[..., 1::2] * place[1::2]).mean()


def by_channels(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Gradients of slices that lie in another order than the slices."""
    turned = x[None, :, :, :].transpose(1, 3)
    return (turned[:, ::2] * 2 + turned[:, 1::2].sin()).permute(0, 2, 3, 1).mean() + x * cos + sin


FUNCTIONS = [rotary, of_three, without_the_first, rows, three_of_four, of_what_is_joined, numbers, by_channels]

CASES = [(layouts, function) for layouts in (1, 4) for function in FUNCTIONS]


def laid_otherwise(x: Tensor) -> list[Tensor]:
    """A tensor in several layouts."""
    wide = torch.cat((x, x), -1)
    return [wide[..., ::2], x, x.mT.contiguous().mT, x[:1].expand(x.shape)]


@pytest.mark.built_together
@pytest.mark.parametrize(("layouts", "function"), mostly_at_night(CASES, by_day=len(FUNCTIONS)))
def test_it_is_as_eager(layouts: int, function: Callable[..., Tensor]) -> None:
    """Values, and derivatives of both orders, in any layout."""
    name = f"in_turns::{function.__name__}_{layouts}"
    operator = Operator(function, name=name, settings=quiet_settings(optimized=False))
    for shape in ((12, 4, 36), (2, 5, 12), (4, 1, 12))[: 2 * layouts]:
        tables = random(*shape[1:]), random(*shape[1:])
        for x in laid_otherwise(random(*shape))[:layouts]:
            assert_as_eager(operator, x.requires_grad_(), *tables)


@pytest.mark.falls_back
def test_what_cannot_be_divided_is_refused_as_in_eager() -> None:
    operator = Operator(rotary, name="in_turns::divided", settings=quiet_settings(optimized=False))
    with pytest.raises(RuntimeError, match=r"must match the size|equal size|must be equal"):
        operator(random(7, 4, 35), random(4, 35), random(4, 35))


@pytest.mark.parametrize("function", [rotary, of_three])
def test_it_is_one_kernel(function: Callable[..., Tensor]) -> None:
    """Results and gradients, although the gradients of slices lie among zeros."""
    given = random(12, 4, 36), random(4, 36, gradient=False), random(4, 36, gradient=False)
    _, program = lowered_joint(function, specs_of(("x", "cos", "sin"), given))
    made = optimize(program, "cpp")
    assert [type(step) for step in made.steps] == [Kernel]


def turned(x: Tensor, f: Tensor) -> Tensor:
    """A rotary embedding as products of complex numbers."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * f).flatten(-2)


def beside_the_whole(x: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
    whole = torch.complex(x, 2 * x) * f.repeat(1, 2)
    return whole * 2, torch.view_as_real(whole.exp()) * 3


def of_a_result(x: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
    whole = torch.complex(x, 2 * x) * f.repeat(1, 2)
    return whole, torch.view_as_real(whole) * 3


def into_the_library(x: Tensor, f: Tensor) -> Tensor:
    whole = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * f
    return torch.view_as_real(whole).flatten(-2) @ x.mT


def of_a_library_call(x: Tensor, f: Tensor) -> Tensor:
    return torch.view_as_real(torch.complex(x, x) @ torch.complex(x, -x).mT).sum(-1) + f.abs().sum()


@pytest.mark.built_together
@pytest.mark.parametrize("function", [turned, beside_the_whole, of_a_result, into_the_library, of_a_library_call])
def test_parts_of_complex_numbers_are_as_in_eager(function: Callable[..., object]) -> None:
    operator = Operator(function, name=f"in_turns::{function.__name__}", settings=quiet_settings(optimized=False))
    for shape in ((12, 4, 36), (2, 5, 6)):
        for gradient in (False, True):
            f = random(shape[1], shape[2] // 2, dtype=torch.complex64, gradient=gradient)
            plain = random(*shape)
            for x in (plain, torch.cat((plain, plain), -1)[..., : shape[-1]], plain[:1].expand(shape)):
                made, expected = (values_and_gradients(each, x, f) for each in (operator, function))
                torch.testing.assert_close(made, expected)
                assert operator.last_rung == "cpp"


def values_and_gradients(function: Callable[..., object], *given: Tensor) -> list[Tensor]:
    leaves = [each.detach().requires_grad_(each.requires_grad) for each in given]
    returned = function(*leaves)
    results = list(returned) if isinstance(returned, tuple) else [returned]
    cotangents = [torch.linspace(0.5, 1.5, each.numel(), dtype=each.dtype).reshape(each.shape) for each in results]
    return results + list(torch.autograd.grad(results, [leaf for leaf in leaves if leaf.requires_grad], cotangents))


@pytest.mark.falls_back
def test_a_change_of_the_parts_is_one_of_the_whole() -> None:
    operator = Operator(changed_by_parts, name="in_turns::changed_by_parts", settings=quiet_settings(optimized=False))
    x = random(5, 6, gradient=False)
    assert all(map(torch.equal, operator(x), changed_by_parts(x)))


def changed_by_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    whole = torch.complex(x, x + 1)
    before = torch.view_as_real(whole).sum(-1)
    torch.view_as_real(whole)[..., 1].mul_(3)
    return whole * 2, before


def test_a_turned_pair_is_one_kernel() -> None:
    given = random(12, 4, 36, gradient=False), random(4, 18, dtype=torch.complex64, gradient=False)
    made = optimize(lowered(turned, specs_of(("x", "f"), given)), "cpp")
    assert [type(step) for step in made.steps] == [Kernel]
