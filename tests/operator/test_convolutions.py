"""Convolutions: kernels for all sizes that the mathematics allows."""

import pytest
import torch
from torch.nn import functional

import opwright
from tests.operator import against_eager
from tests.operator.against_eager import assert_as_eager, variants


@opwright.operator
def filtered_twice(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.tanh(functional.conv2d(x, weight, bias, padding=1))


@opwright.operator
def spread(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.conv_transpose1d(x, weight, stride=2).sin()


def random(*shape):
    return against_eager.random(*shape, dtype=torch.float64)


BATCHES = (2, 3, 8, 15, 16, 17, 40)  # PyTorch chooses a library by whether there are fewer than 16


def test_one_variant_serves_every_batch_and_every_kernel_that_fits():
    before = variants(filtered_twice)
    for batch in BATCHES:
        assert_as_eager(filtered_twice, random(batch, 3, 9, 7), random(4, 3, 3, 3), random(4), order=1)
    for extent in (2, 5, 7):  # and by whether a kernel is wider than 3
        assert_as_eager(filtered_twice, random(16, 3, 9, 7), random(4, 3, extent, extent), random(4), order=1)
    for channels, width in ((5, 6), (20, 12)):
        square = random(2, channels, width, width)
        assert_as_eager(filtered_twice, square, random(channels, channels, 3, 3), random(channels), order=1)
    assert variants(filtered_twice) - before == 1


def test_one_variant_serves_every_batch_of_a_transposed_convolution():
    before = variants(spread)
    for batch in BATCHES:
        assert_as_eager(spread, random(batch, 3, 7), random(3, 4, 5), order=1)
    assert variants(spread) - before == 1


@pytest.mark.falls_back
@pytest.mark.parametrize(
    ("x", "weight", "bias"),
    [
        ((2, 3, 9, 7), (4, 3, 3, 3), (5,)),
        ((2, 3, 9, 7), (4, 2, 3, 3), (4,)),
        ((2, 3, 2, 2), (4, 3, 5, 5), (4,)),
    ],
    ids=["bias", "channels", "kernel too large"],
)
def test_what_does_not_fit_raises_as_in_torch(x, weight, bias):
    filtered_twice(random(2, 3, 9, 7), random(4, 3, 3, 3), random(4))
    given = (random(*x), random(*weight), random(*bias))
    with pytest.raises(RuntimeError) as eager:
        filtered_twice.reference(*given)
    with pytest.raises(RuntimeError) as ours:
        filtered_twice(*given)
    assert str(ours.value) == str(eager.value)


def test_a_convolution_in_another_layout_keeps_its_memory():
    """The result of the kernel lies in that of the convolution."""
    x, weight, bias = random(2, 3, 9, 7), random(4, 3, 3, 3), random(4)
    last = [t.detach().contiguous(memory_format=torch.channels_last).requires_grad_() for t in (x, weight)]
    for given in ((x, weight, bias), (*last, bias)):
        assert_as_eager(filtered_twice, *given, order=1)
        assert filtered_twice(*given).is_contiguous(memory_format=torch.channels_last) == (given[0] is last[0])
