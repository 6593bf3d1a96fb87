"""Any layout in, of arguments and of cotangents; any rank and size."""

import itertools

import pytest
import torch

import opwright
from tests.operator.against_eager import assert_as_eager, random, variants
from tests.operator.operators import lltm, mix, wave
from tests.suite.nights import mostly_at_night


def of_conjugate():
    imaginary = torch.complex(random(3, 4, gradient=False), random(3, 4, gradient=False)).conj().imag
    assert imaginary.is_neg()
    return imaginary


LAYOUTS = {
    "transposed": lambda: random(4, 3, gradient=False).t(),
    "permuted": lambda: random(4, 2, 3, gradient=False).permute(2, 1, 0)[:, 0],
    "columns": lambda: random(3, 9, gradient=False)[:, 1::2],
    "rows": lambda: random(9, 4, gradient=False)[2:8:2],
    "offset": lambda: random(20, gradient=False)[5:17].view(3, 4),
    "expanded rows": lambda: random(1, 4, gradient=False).expand(3, 4),
    "expanded columns": lambda: random(3, 1, gradient=False).expand(3, 4),
    "one number": lambda: random(gradient=False).expand(3, 4),
    "overlapping": lambda: random(6, gradient=False).as_strided((3, 4), (1, 1)),
    "windows": lambda: random(6, gradient=False).unfold(0, 4, 1),
    "negative": of_conjugate,
    "conjugate real": lambda: torch.view_as_real(torch.complex(random(3, 2), random(3, 2)).detach()).reshape(3, 4),
    "odd offset": lambda: random(13, gradient=False)[1:].view(3, 4),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arguments_of_any_layout(layout):
    other = random(3, 4, seed=2)
    assert_as_eager(mix, LAYOUTS[layout]().requires_grad_(), other)
    assert_as_eager(mix, other, LAYOUTS[layout]())


INCOMING = [(create_graph, layout) for create_graph in (False, True) for layout in LAYOUTS]


@pytest.mark.parametrize(
    ("create_graph", "layout"), mostly_at_night(INCOMING, by_day=[*INCOMING[:13], *INCOMING[13::4]])
)
def test_incoming_gradients_of_any_layout(layout, create_graph):
    cotangents = LAYOUTS[layout]()
    found = []
    for function in (mix, mix.reference):
        x, y = random(3, 4), random(3, 4, seed=2)
        found.append(torch.autograd.grad(function(x, y), [x, y], cotangents, create_graph=create_graph))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("rank", mostly_at_night(range(6), by_day=(0, 2, 5)))
def test_every_rank_with_every_pattern_of_ones_and_zeros(rank):
    for shape in (
        itertools.product((0, 1, 3), repeat=rank) if rank < 3 else [(2,) * rank, (1,) * rank, (0, *[2] * (rank - 1))]
    ):
        rung = "composed" if 0 in shape else "cpp"
        assert_as_eager(wave, random(*shape), rung=rung, order=1)


BROADCASTS = [
    ((3, 4), (4,)),
    ((3, 4), (1, 4)),
    ((3, 4), (3, 1)),
    ((3, 1), (1, 4)),
    ((4,), (3, 4)),
    ((3, 4), ()),
    ((), (3,)),
    ((1,), (3,)),
    ((1, 1), (1,)),
    ((2, 3, 4), (3, 1)),
    ((1,), ()),
]


@pytest.mark.parametrize(("left", "right"), mostly_at_night(BROADCASTS, by_day=BROADCASTS[:5:4]))
def test_arguments_broadcast(left, right):
    assert_as_eager(mix, random(*left), random(*right, seed=1))


@pytest.mark.parametrize("size", mostly_at_night([2, 3, 5, 15, 16, 17, 257, 4097, 4, 255, 256], by_day=8))
def test_rows_of_every_length(size):
    assert_as_eager(lltm, random(3, 3 * size), random(3, size), order=1)


def test_lengths_share_a_variant():
    before = variants(wave)
    for size in (6, 60, 600):
        wave(random(size))
    assert variants(wave) <= before + 1


@pytest.mark.nightly
def test_ten_million_elements():
    x = random(10_000_000)
    torch.testing.assert_close(wave(x), wave.reference(x))
    assert wave.last_rung == "cpp"
    (gradient,) = torch.autograd.grad(wave(x).sum(), x)
    torch.testing.assert_close(gradient, torch.cos(x) * x + torch.sin(x))


@opwright.operator
def by_strides(x: torch.Tensor) -> torch.Tensor:
    return x.as_strided((2, 2), (1, 2)) * 2 + 1


@opwright.operator
def by_strides_from_the_start(x: torch.Tensor) -> torch.Tensor:
    return x.as_strided((2, 2), (1, 2), 0) * 3 + 1


@pytest.mark.falls_back
@pytest.mark.parametrize("operator", [by_strides, by_strides_from_the_start], ids=lambda operator: operator.__name__)
def test_a_view_by_strides_of_a_part_of_memory(operator):
    """It may reach what is not in the tensor, and its gradient depends on where the tensor lies."""
    memory = random(20, gradient=False)
    whole = random(10, gradient=False)
    for part in (whole, memory[5:15], memory[:10], memory[::2], memory.view(10, 2)[:, 0]):
        given = part.detach().requires_grad_()
        result, expected = operator(given), operator.reference(given)
        assert torch.equal(result, expected)
        assert operator.last_rung == ("cpp" if part is whole else "composed")
        torch.testing.assert_close(torch.autograd.grad(result.sum(), given), torch.autograd.grad(expected.sum(), given))
