"""What reads a `cat` is computed in its parts, and the meaning stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import opwright
from opwright.ir.program import Kernel
from opwright.ir.verifier import verify
from opwright.passes.loops.fuse import fuse
from opwright.passes.loops.split_where_joined import split_where_joined
from tests.derived import lowered_joint, run, specs_of
from tests.passes.programs import lowered_from, steps, text

HEADS, TABLE, WIDE = torch.zeros(3, 4, 32), torch.zeros(4, 32), torch.zeros(6, 40)


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def test_listing() -> None:
    program = lowered_from(lambda x, y: torch.cat((x, -y), 0) * 2 + 1, WIDE, torch.zeros(2, 40))
    assert steps(split_where_joined(program)) == text(
        """
        kernel neg_y over i0 < y_size_0, i1 < x_size_1
          new neg_y: float32[y_size_0, x_size_1]
          neg_y[i0, i1] = -y[i0, i1]
        kernel output_0_0 over i0 < x_size_0, i1 < x_size_1
          new output_0: float32[x_size_0 + y_size_0, x_size_1]
          output_0[i0, i1] = x[i0, i1] * 2.0 + 1.0
        kernel output_0_1 over i0 < y_size_0, i1 < x_size_1
          output_0[i0 + x_size_0, i1] = neg_y[i0, i1] * 2.0 + 1.0
        """
    )


# How many kernels the forward pass is, and how many without the pass.
MEANINGS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], int, int]] = {
    "a rotary embedding": (rotary, (HEADS, TABLE, TABLE), 1, 2),
    "of halves that are sliced": (
        lambda x, y: x * y + torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1),
        (HEADS, TABLE),
        1,
        2,
    ),
    "a rotary embedding of an odd size": (
        rotary,
        (torch.zeros(3, 4, 33), torch.zeros(4, 33), torch.zeros(4, 33)),
        2,
        3,
    ),
    "of quarters": (
        lambda x, y: x * y + torch.cat(x.chunk(4, -1)[::-1], -1),
        (HEADS, TABLE),
        1,
        2,
    ),
    "two joined alike": (
        lambda x, y: torch.cat((x, y), 1).sin() * torch.cat((-x, y.exp()), 1),
        (HEADS, torch.zeros(3, 2, 32)),
        2,
        3,
    ),
    "joined twice, in two ways": (lambda x, y: torch.cat((x, y), 0) * torch.cat((y, x), 1).sum(), (WIDE, WIDE), 3, 3),
    "joined of unlike parts": (
        lambda x, y: torch.cat((x, y), 0) * torch.cat((y, x), 0),
        (WIDE, torch.zeros(2, 40)),
        4,
        4,
    ),
    "an output itself": (lambda x, y: (c := torch.cat((x, y), 0), c * 2), (WIDE, WIDE), 3, 3),
    "reduced": (lambda x, y: torch.softmax(torch.cat((x, y), -1) * 2, -1), (WIDE, WIDE), 3, 3),
    "read by the library": (lambda x, y: torch.cat((x, y), 0) @ x.mT, (WIDE, WIDE), 2, 2),
    "read without its end": (lambda x, y: torch.cat((x, y), 0)[:-1] * 2, (WIDE, WIDE), 3, 3),
    "read in parts along another dimension": (lambda x, y: torch.cat((x, y), 0)[:, 1:].mT * 2, (WIDE, WIDE), 2, 3),
    "read twice through views": (lambda x, y: torch.cat((x, y), 0)[:, 1:].mT[None, :-1] * 2, (WIDE, WIDE), 2, 3),
    "read in another order": (lambda x, y: torch.cat((x, y), 0)[1:] * 2, (WIDE, WIDE), 3, 3),
    "read up to an earlier end": (lambda x, y: torch.cat((x, y), 0)[:-1] * 2, (WIDE, WIDE), 3, 3),
    "read up to the end of a part": (lambda x, y: torch.stack((x, y, x), -1)[..., :2] * 2, (WIDE, WIDE), 2, 2),
    "read along two dimensions": (lambda x, y: torch.cat((x, y), 0).diagonal() * 2, (WIDE, WIDE), 3, 3),
    "joined of a view of what is joined": (
        lambda x, y: torch.stack(((c := torch.stack((x, y), 0)).mT, c.mT.exp()), -1) * 2,
        (WIDE, WIDE),
        2,
        3,
    ),
    "read twice": (lambda x, y: (c := torch.cat((x.tanh(), y), 0)) * c.sin(), (WIDE, WIDE), 2, 3),
    "parts of one element": (lambda x, y: torch.stack((x, y), -1) * 2, (WIDE, WIDE), 1, 2),
    "parts of one element in short rows": (
        lambda x, y: torch.stack((x, y), -1) * 2,
        (torch.zeros(40, 3), torch.zeros(40, 3)),
        1,
        2,
    ),
    "parts shorter than a vector": (
        lambda x, y: torch.cat((x, y), -1) * 2,
        (torch.zeros(40, 3), torch.zeros(40, 2)),
        2,
        3,
    ),
    "across broadcast axes": (lambda x, y: torch.cat((x, y), -1) * torch.ones(5, 1, 1), (WIDE, WIDE), 2, 3),
    "a way around": (
        lambda x, y: ((c := torch.cat((x, y), 0)) * (c * 2 + 1).sin() + 1).exp() * c,
        (WIDE, torch.zeros(2, 40)),
        2,
        3,
    ),
    "an output that is read again": (
        lambda x, y: ((c := torch.cat((x, y), 0) * 2), torch.cat((y, x), 0) + c),
        (WIDE, torch.zeros(2, 40)),
        4,
        5,
    ),
    "beside one that is joined along another dimension": (
        lambda x, y, z: (torch.cat((x, y), 0) + 1) * (torch.cat((z, -z), 1) + 1),
        (WIDE, torch.zeros(2, 40), torch.zeros(8, 20)),
        3,
        4,
    ),
    "joined again": (
        lambda x, y: torch.cat((torch.cat((x, y), 0) * 2, y), 0) + 1,
        (WIDE, torch.zeros(2, 40)),
        4,
        5,
    ),
    "slices of slices": (lambda x, y: (2 * x[:-1])[:-1] * y[:1], (WIDE, torch.zeros(2, 40)), 1, 1),
    "gated": (lambda x, y: functional.silu(torch.cat((x, y), -1)), (WIDE, WIDE), 2, 3),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_the_meaning_stays(name: str) -> None:
    """Forward and backward, with the sizes of the trace and with others."""
    function, tensors, kernels, before = MEANINGS[name]
    forward = lowered_from(function, *tensors)
    made = fuse(split_where_joined(forward))
    verify(made)
    assert sum(isinstance(step, Kernel) for step in made.steps) == kernels
    assert sum(isinstance(step, Kernel) for step in fuse(forward).steps) == before
    given = [torch.randn_like(each).requires_grad_() for each in tensors]
    _, program = lowered_joint(function, specs_of("xyz"[: len(given)], given))
    split = split_where_joined(program)
    verify(split)
    for scale in (1, 3):
        inputs = [torch.randn(*(size * scale for size in each.shape)) for each in tensors]
        results = function(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        all_given = [*inputs, *(torch.randn_like(each) for each in results)]
        for improved in (split, fuse(split)):
            for left, right in zip(run(program, all_given), run(improved, all_given), strict=True):
                torch.testing.assert_close(left, right, rtol=0, atol=0)


@opwright.operator
def beside_parts_of_one_element(x: Tensor) -> tuple[Tensor, Tensor]:
    larger = x >= torch.cat([x, x], dim=0)
    return larger.any(-1), (larger == larger).all(-1, keepdim=True)


def test_parts_of_one_element_have_no_axis_along_them() -> None:
    x = torch.randn(1, 3, 3)
    for mine, right in zip(
        beside_parts_of_one_element(x), ((x >= x).expand(2, 3, 3).any(-1), torch.ones(2, 3, 1)), strict=True
    ):
        assert torch.equal(mine, right.bool())
    assert beside_parts_of_one_element.last_rung == "cpp"


@opwright.operator
def joined_with_nothing(x: Tensor) -> Tensor:
    return torch.cat([x[:, 3:], torch.zeros(0), x[:, :3]], 1) * 2


@opwright.operator
def joined_along_a_third_dimension(x: Tensor) -> Tensor:
    return torch.cat([x, x], 2)


def test_an_empty_vector_is_passed_over() -> None:
    x = torch.randn(4, 6)
    torch.testing.assert_close(joined_with_nothing(x), torch.cat([x[:, 3:], x[:, :3]], 1) * 2)
    with pytest.raises(IndexError, match="Dimension out of range"):
        joined_along_a_third_dimension(x)


@opwright.operator
def turned_by_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return rotary(x, cos, sin)


@pytest.mark.parametrize("sizes", [(64, 62, 63, 3, 4, 2), (5, 33, 34, 64)])
def test_even_and_odd_sizes_in_turn(sizes: tuple[int, ...]) -> None:
    """Two equal halves are one kernel, two others are two: each serves the sizes that it is for."""
    for size in sizes:
        x, table = torch.randn(3, 4, size, requires_grad=True), (torch.randn(4, size), torch.randn(4, size))
        given = torch.randn(3, 4, size)
        made, expected = turned_by_halves(x, *table), rotary(x, *table)
        torch.testing.assert_close(made, expected, rtol=0, atol=1e-6)
        torch.testing.assert_close(*(torch.autograd.grad(y, x, given) for y in (made, expected)), rtol=0, atol=1e-6)
        assert turned_by_halves.last_rung == "cpp"
