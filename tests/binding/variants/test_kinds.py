"""What tells two calls apart."""

import math

import pytest
import torch

from opwright.binding.variants.kinds import are_constants, constant_key, kind_of

ONES = torch.ones(3, 4)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (0.0, -0.0, False), (1, True, False), (1, 1.0, False), (0, False, False), ("1", 1, False), (None, 0, False),
        (math.nan, float("nan"), True), (2.5, 2.5, True), ("", "", True), (math.inf, -math.inf, False),
        (math.nan, -math.nan, False),
    ],
)  # fmt: skip
def test_constants(left, right, same):
    assert (constant_key(left) == constant_key(right)) is same
    assert (kind_of([left]) == kind_of([right])) is same


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (torch.ones(5, 2), True),
        (ONES.t(), True),
        (torch.ones(3, 1), False),
        (torch.ones(3), False),
        (ONES.double(), False),
        (ONES.to("meta"), False),
        (ONES.to_sparse(), False),
        (torch.ones(3, 4, requires_grad=True), False),
    ],
)
def test_tensors(other, same):
    assert (kind_of([ONES]) == kind_of([other])) is same


def test_gradients_can_be_left_out():
    asking = torch.ones(3, 4, requires_grad=True)
    assert kind_of([ONES], gradients=False) == kind_of([asking], gradients=False)


@pytest.mark.parametrize("value", [[1], {}, (1,), 1j, object()])
def test_what_a_kernel_is_not_specialised_to(value):
    assert are_constants([1, 1.0, True, None, "text", torch.float32])
    assert not are_constants([1, value])
