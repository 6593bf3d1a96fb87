"""A backward pass computes no product for gradients that nobody asks for, in C++ and in Python."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import opwright
from opwright.binding.variants.variant import Plan

pytestmark = pytest.mark.built_together

PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::mkldnn_convolution", "aten::slow_conv2d_backward")


@opwright.operator
def critic(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(x @ w1) @ w2


@opwright.operator
def scaled_critic(scale: float, x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(scale * x @ w1) @ w2


@opwright.operator
def squashed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ w)


@opwright.operator
def stretched(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * y


@opwright.operator
def filtered(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.conv2d(torch.sin(x), weight))


CASES = {
    critic: ((5, 4), (4, 3), (3, 2)),
    scaled_critic: (None, (5, 4), (4, 3), (3, 2)),
    squashed: ((5, 4), (4, 3)),
    stretched: ((5, 4), (5, 4)),
    filtered: ((2, 3, 5, 5), (4, 3, 3, 3)),
}


def leaves_of(operator):
    torch.manual_seed(0)
    return [0.5 if sizes is None else torch.randn(sizes, requires_grad=True) for sizes in CASES[operator]]


def gradients_and_products(operator, positions, function=None):
    """Gradients of some arguments, and how many products are computed for them."""
    leaves = leaves_of(operator)
    loss = (function or operator)(*leaves).square().sum()
    wanted = [leaves[position] for position in positions]
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        found = torch.autograd.grad(loss, wanted)
    return found, sum(event.count for event in seen.key_averages() if event.key in PRODUCTS)


@pytest.fixture(params=["tape", "Python"])
def path(request, monkeypatch):
    for operator in CASES:
        operator(*leaves_of(operator))
        if request.param == "Python":
            monkeypatch.setattr(operator._variants.now(), "play", None)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("operator", "positions", "products"),
    [
        (critic, (0, 1, 2), 4),
        pytest.param(critic, (1, 2), 3, marks=pytest.mark.nightly),  # all but the one for x
        (critic, (2,), 1),
        pytest.param(critic, (0,), 2, marks=pytest.mark.nightly),
        (scaled_critic, (2, 3), 3),
        (squashed, (1,), 2),  # the operator of one gradient would compute the output again
    ],
)
def test_products_that_are_computed(operator, positions, products):
    gradients_and_products(operator, positions)  # derives what it takes
    found, counted = gradients_and_products(operator, positions)
    expected, _ = gradients_and_products(operator, positions, operator.reference)
    torch.testing.assert_close(found, expected)
    assert counted == products


@pytest.mark.parametrize(
    ("operator", "products"),
    [
        (critic, ((0,), (0, 1), (1,), (2,))),
        (squashed, ((0,), (1,))),
        (stretched, ()),
        (filtered, ((0,), (1,))),
    ],
)
def test_which_gradients_a_product_is_computed_for(operator, products):
    operator(*leaves_of(operator))
    (variant,) = operator._variants.now().by_call[((True,) * len(CASES[operator]), ())]
    assert variant.plan.products == products
    assert Plan.from_record(variant.plan.to_record()) == variant.plan
