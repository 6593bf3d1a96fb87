"""Kernels on both sides of a reshape run over the same axes, and the meaning stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.ir.program import Call, Kernel, Program
from opwright.ir.verifier import verify
from opwright.passes.loops.fuse import fuse
from opwright.passes.loops.split_axes import split_axes
from tests.derived import lowered_joint, run, specs_of
from tests.passes.programs import lowered_from, steps, text
from tests.suite.nights import mostly_at_night

MATRIX, IMAGES = torch.zeros(3, 8), torch.zeros(3, 8, 5, 6)

LISTINGS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], str]] = {
    "merged again after the kernel": (
        lambda x: torch.exp(x).flatten() * 2,
        (MATRIX,),
        """
        kernel exp_x over i0 < x_size_0, i1 < x_size_1
          new exp_x: float32[x_size_0, x_size_1]
          exp_x[i0, i1] = exp(x[i0, i1])
        view view_exp_x: float32[x_size_0, x_size_1] = exp_x[d0, d1]
        kernel output_0 over i0 < x_size_0, i1 < x_size_1
          new output_0: float32[x_size_0*x_size_1]
          output_0[i0*x_size_1 + i1] = view_exp_x[i0, i1] * 2.0
        """,
    ),
    "a shifted index cannot be split": (
        lambda x: torch.exp(x).flatten()[1:] * 2,
        (MATRIX,),
        """
        kernel exp_x over i0 < x_size_0, i1 < x_size_1
          new exp_x: float32[x_size_0, x_size_1]
          exp_x[i0, i1] = exp(x[i0, i1])
        call view_exp_x: float32[x_size_0*x_size_1] = aten::reshape(exp_x, [x_size_0*x_size_1])
        view slice_exp_x: float32[x_size_0*x_size_1 - 1] = view_exp_x[d0 + 1]
        kernel output_0 over i0 < x_size_0*x_size_1 - 1
          new output_0: float32[x_size_0*x_size_1 - 1]
          output_0[i0] = slice_exp_x[i0] * 2.0
        """,
    ),
    "nothing to fuse it with": (
        lambda x: x.flatten() * 2,
        (MATRIX,),
        """
        call view_x: float32[x_size_0*x_size_1] = aten::reshape(x, [x_size_0*x_size_1])
        kernel output_0 over i0 < x_size_0*x_size_1
          new output_0: float32[x_size_0*x_size_1]
          output_0[i0] = view_x[i0] * 2.0
        """,
    ),
}


@pytest.mark.parametrize("name", LISTINGS)
def test_listing(name: str) -> None:
    function, tensors, expected = LISTINGS[name]
    assert steps(split_axes(lowered_from(function, *tensors))) == text(expected)


def group_norm(x: Tensor) -> Tensor:
    return functional.silu(functional.group_norm(x, 4))


def by_hand(x: Tensor) -> Tensor:
    """That the last size is a product of others is not known."""
    rows = x.reshape(x.shape[0], 4, -1)
    rows = (rows - rows.mean(-1, keepdim=True)) / (1 + rows.var(-1, keepdim=True))
    return rows.reshape(x.shape).tanh()


def heads(x: Tensor) -> Tensor:
    """Heads are made, normalised and merged again."""
    split = x.reshape(*x.shape[:2], 2, -1).transpose(1, 2)
    return torch.softmax(split, -1).transpose(1, 2).reshape(x.shape) * x


def shuffled(x: Tensor) -> Tensor:
    """Two ways to split the channels: one of them stays a library call."""
    groups = torch.exp(x).reshape(x.shape[0], 2, -1, *x.shape[2:])
    return torch.sin(groups.transpose(1, 2).reshape(x.shape))


def pixels(x: Tensor) -> Tensor:
    return torch.tanh(functional.pixel_shuffle(torch.exp(x), 2))


def read_as_it_was(x: Tensor) -> tuple[Tensor, Tensor]:
    """A product reads the reshaped matrix, and a kernel too."""
    y = torch.exp(x).flatten(1)
    return y @ y.mT, y * y.sum(0)


def first_half(x: Tensor) -> Tensor:
    return torch.exp(x).flatten(1)[:, :4] * 2


MEANINGS: dict[str, tuple[Callable[[Tensor], Any], Tensor, int | None]] = {
    "group_norm": (group_norm, IMAGES, 1),
    "by_hand": (by_hand, IMAGES, None),
    "heads": (heads, torch.zeros(3, 4, 8), 3),
    "shuffled": (shuffled, IMAGES, None),
    "pixels": (pixels, IMAGES, 1),
    "read_as_it_was": (read_as_it_was, IMAGES, None),
    "first_half": (first_half, IMAGES, None),
}


@pytest.mark.parametrize("size", mostly_at_night([1, 0], by_day=1))
@pytest.mark.parametrize("name", mostly_at_night(MEANINGS, by_day=[*MEANINGS][::2]))
def test_the_meaning_stays(name: str, size: int) -> None:
    """Forward and backward, with the sizes of the trace and with others."""
    function, like, kernels = MEANINGS[name]
    if kernels is not None:
        forward = fuse(split_axes(lowered_from(function, like)))
        assert [type(step) for step in forward.steps if isinstance(step, Kernel | Call)] == [Kernel] * kernels
    x = torch.randn_like(like).requires_grad_()
    joint, program = lowered_joint(function, specs_of(["x"], [x]))
    if size:
        x = torch.randn(like.shape[0] + 2, *like.shape[1:-1], like.shape[-1] * 2)
    made = function(x)
    made = made if isinstance(made, tuple) else (made,)
    given = [x.detach(), *(torch.randn_like(each) for each in made)]
    split = split_axes(program)
    verify(split)
    before = run(program, given)
    for improved in (split, fuse(split)):
        verify(improved)
        for left, right in zip(before, run(improved, given), strict=True):
            torch.testing.assert_close(left, right, rtol=0, atol=0)
    torch.testing.assert_close(before[0], made[0].detach(), rtol=1e-4, atol=1e-5)
    assert joint.gradients


def calls(program: Program) -> list[str]:
    return [step.function for step in program.steps if isinstance(step, Call)]


def test_no_library_call_is_left_of_a_group_norm() -> None:
    x, weight, bias = (torch.zeros(*shape, requires_grad=True) for shape in ((3, 8, 5, 6), (8,), (8,)))

    def reference(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.silu(functional.group_norm(x, 4, weight, bias))

    _, program = lowered_joint(reference, specs_of(["x", "weight", "bias"], [x, weight, bias]))
    assert "aten::reshape" in calls(program)
    assert calls(split_axes(program)) == []
