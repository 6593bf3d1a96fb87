"""The second derivative of convolutions is PyTorch's, whose own serves all but the fake tensors of our modes."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode

from opwright.tracing.decompositions.second_derivatives import add_second_derivatives, double_backward

OWN = torch.ops.aten._convolution_double_backward.default
HOW = [(1, 0, 1, 0), (2, 1, 1, 1), (2, 1, 2, 0), (1, 2, 2, 0)]  # stride, padding, dilation, output padding
GIVEN = [(True, True, True), (True, False, False), (False, True, False), (False, False, True)]


def _arguments(dimensions: int, how: tuple[int, ...], groups: int, given: tuple[bool, ...], *, transposed: bool):
    stride, padding, dilation, more = ([number] * dimensions for number in how)
    x = torch.randn(2, 4, *[9] * dimensions, dtype=torch.float64)
    channels = (4, 6 // groups) if transposed else (6, 4 // groups)
    weight = torch.randn(*channels, *[3] * dimensions, dtype=torch.float64)
    rest = (stride, padding, dilation, transposed, more if transposed else [0] * dimensions, groups)
    output = torch.ops.aten.convolution(x, weight, None, *rest)
    flowing = (torch.randn_like(x), torch.randn_like(weight), torch.randn(6, dtype=torch.float64))
    of = [each if is_given else None for each, is_given in zip(flowing, given, strict=True)]
    return (*of, torch.randn_like(output), weight, x, *rest, [True, True, True])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_it_is_pytorchs(dimensions: int, transposed: bool) -> None:
    torch.manual_seed(0)
    for how, groups, given in itertools.product(HOW, (1, 2), GIVEN):
        arguments = _arguments(dimensions, how, groups, given, transposed=transposed)
        for ours, theirs in zip(double_backward(*arguments), OWN(*arguments), strict=True):
            if ours is None or theirs is None:
                assert not any(each is not None and each.any() for each in (ours, theirs))
            else:
                torch.testing.assert_close(ours, theirs)


def test_others_get_pytorchs_own() -> None:
    add_second_derivatives()
    arguments = _arguments(2, HOW[0], 1, GIVEN[0], transposed=False)
    with enable_python_dispatcher(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [mode.from_tensor(each) if isinstance(each, torch.Tensor) else each for each in arguments]
        found = OWN(*fake)
    expected = [arguments[place].shape for place in (3, 5, 4)]
    assert [each.shape for each in found] == expected
