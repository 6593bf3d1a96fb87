"""Results lie in memory as eager's do, for arguments that lie in any order, and so says its fake kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

import opwright
from opwright.api.operator import Operator
from tests.operator.against_eager import assert_as_eager, random
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night
from tests.suite.strides import stride_difference


def last(*shape: int, seed: int = 0) -> Tensor:
    """A tensor in channels last."""
    made = random(*shape, seed=seed, gradient=False).contiguous(memory_format=torch.channels_last)
    assert made.stride(1) == 1
    return made.requires_grad_()


def transposed(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape[::-1], seed=seed, gradient=False).t().requires_grad_()


def twice_transposed(x: Tensor) -> Tensor:
    return x.t() * 2


def seen_transposed(x: Tensor) -> Tensor:
    return (x * 2).t()


def curve(x: Tensor) -> Tensor:
    return torch.relu(x * 2)


def added(x: Tensor, y: Tensor) -> Tensor:
    return x * 2 + y


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x * 2, 1)


def convolved(x: Tensor, weight: Tensor) -> Tensor:
    return torch.relu(functional.conv2d(x, weight))


def channels_normalized(x: Tensor) -> Tensor:
    return functional.layer_norm(x.permute(0, 2, 3, 1), (3,)).permute(0, 3, 1, 2)


def groups_normalized(x: Tensor) -> Tensor:
    return functional.silu(functional.group_norm(x, 2))


def batch_normalized(x: Tensor, weight: Tensor) -> Tensor:
    return torch.relu(functional.batch_norm(x, None, None, weight, None, True))


def pooled(x: Tensor) -> Tensor:
    return functional.max_pool2d(x * 2, 2)


def padded(x: Tensor) -> Tensor:
    return functional.pad(x * 2, (1, 1))


def in_pieces(x: Tensor) -> tuple[Tensor, Tensor]:
    left, right = (x * 2).chunk(2, 1)
    return left, right


def joined(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x * 2, y], 1)


def vectors_of_singular_values(x: Tensor) -> Tensor:
    return torch.linalg.svd(x * 2, full_matrices=False).Vh


def transformed(x: Tensor) -> Tensor:
    return torch.fft.rfft2(x * 2).abs()


def summed(x: Tensor) -> Tensor:
    return (x * 2).sum(1)


CASES = {
    "a transposed view": (twice_transposed, lambda: [random(4, 6)]),
    "transposed afterwards": (seen_transposed, lambda: [random(4, 6)]),
    "channels normalized as rows": (channels_normalized, lambda: [random(2, 3, 4, 5)]),
    "transposed": (curve, lambda: [transposed(4, 6)]),
    "in channels last": (curve, lambda: [last(2, 3, 4, 5)]),
    "in channels last, with gaps": (curve, lambda: [last(2, 3, 4, 5).detach()[:, :, 1:].requires_grad_()]),
    "one channel in channels last": (curve, lambda: [random(2, 4, 5, 1).permute(0, 3, 1, 2).detach().requires_grad_()]),
    "the first decides": (added, lambda: [transposed(4, 6), random(4, 6)]),
    "the first decides again": (added, lambda: [random(4, 6), transposed(4, 6)]),
    "the second decides, the first being expanded": (
        added,
        lambda: [random(1, 6).detach().expand(4, 6).requires_grad_(), transposed(4, 6)],
    ),
    "rows": (softmax, lambda: [transposed(4, 6)]),
    "channels": (softmax, lambda: [last(2, 3, 4, 5)]),
    "convolution": (convolved, lambda: [last(2, 3, 6, 5), random(4, 3, 2, 2)]),
    "convolution with a weight in channels last": (convolved, lambda: [random(2, 3, 6, 5), last(4, 3, 2, 2)]),
    "group norm": (groups_normalized, lambda: [last(2, 4, 3, 5)]),
    "batch norm": (batch_normalized, lambda: [last(2, 4, 3, 5), random(4)]),
    "batch norm of what is permuted": (
        batch_normalized,
        lambda: [random(5, 3, 4, 2).detach().permute(3, 2, 1, 0).requires_grad_(), random(4)],
    ),
    "pooling": (pooled, lambda: [last(2, 3, 4, 6)]),
    "padding": (padded, lambda: [last(2, 3, 4, 6)]),
    "pieces": (in_pieces, lambda: [transposed(4, 6)]),
    "joined": (joined, lambda: [transposed(4, 6), transposed(4, 5)]),
    "vectors of singular values": (vectors_of_singular_values, lambda: [random(4, 6)]),
    "a Fourier transform": (transformed, lambda: [random(4, 6)]),
    "sums": (summed, lambda: [last(2, 3, 4, 5)]),
    "expanded": (curve, lambda: [random(1, 6).detach().expand(4, 6).requires_grad_()]),
    "the second decides in rows": (
        added,
        lambda: [random(1, 6).detach().expand(4, 6).requires_grad_(), random(4, 6)],
    ),
}


WITH_GRADIENTS = {"transposed afterwards", "the first decides", "convolution", "group norm", "batch norm", "pieces"}


BY_DAY = (
    *("a transposed view", "transposed afterwards", "in channels last, with gaps", "one channel in channels last"),
    *("the first decides", "the second decides, the first being expanded", "channels", "convolution", "group norm"),
    *("batch norm of what is permuted", "pieces", "vectors of singular values"),
)


@pytest.mark.parametrize("case", mostly_at_night(CASES, BY_DAY))
def test_results_lie_as_those_of_eager(case: str) -> None:
    function, make = CASES[case]
    arguments = [argument.detach().requires_grad_(case in WITH_GRADIENTS) for argument in make()]
    name = f"strides::{case.translate(str.maketrans(' ,', '__'))}"
    operator = Operator(function, name=name, settings=quiet_settings(optimized=False))
    assert_as_eager(operator, *arguments, order=1)
    with FakeTensorMode() as mode, torch.no_grad():
        assert operator.overload is not None
        made = operator.overload(*map(mode.from_tensor, arguments))
    expected = function(*arguments)
    for fake, true in zip(*map(_tensors, (made, expected)), strict=True):
        assert not (told := stride_difference(fake, true)), told


def _tensors(returned: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (returned,) if isinstance(returned, Tensor) else returned


@pytest.mark.parametrize("function", mostly_at_night([groups_normalized, curve], by_day=1))
def test_gradients_of_what_lies_in_channels_last_lie_so_too(function: Callable[[Tensor], Tensor]) -> None:
    name = f"strides::{function.__name__}_of_gradients"
    operator = Operator(function, name=name, settings=quiet_settings(optimized=False))
    x, y = last(2, 4, 4, 5), last(2, 4, 4, 5)
    (mine,) = torch.autograd.grad(operator(x), x, torch.ones_like(x))
    (eager,) = torch.autograd.grad(function(y), y, torch.ones_like(y))
    assert mine.stride() == eager.stride() == x.stride()


def test_calls_that_lie_otherwise_have_kernels_of_their_own() -> None:
    operator = Operator(added, name="strides::added_in_orders", settings=quiet_settings(optimized=False))
    row, column = random(4, 6, gradient=False), transposed(4, 6).detach()
    narrow = random(4, 12, gradient=False)[:, ::2]
    for _ in range(2):  # by Python, then by C++
        for x, y in ((row, row), (narrow, row), (column, column), (row, column), (column, row), (narrow, column)):
            assert operator(x, y).stride() == added(x, y).stride()
            assert operator.last_rung == "cpp"
    assert operator.variants is not None
    assert operator.variants.count() == 4


OF_SIZE_ONE = {
    "linear, one row": (lambda x, w, b: functional.linear(x.tanh(), w, b), [(1, 6), (4, 6), (4,)]),
    "linear, one column": (lambda x, w, b: functional.linear(x.tanh(), w, b), [(5, 6), (1, 6), (1,)]),
    "linear, one element": (lambda x, w, b: functional.linear(x.tanh(), w, b), [(1, 6), (1, 6), (1,)]),
    "linear, three dimensions": (lambda x, w, b: functional.linear(x.tanh(), w, b), [(1, 1, 6), (4, 6), (4,)]),
    "addmm": (lambda b, x, w: torch.addmm(b, x.tanh(), w), [(4,), (1, 6), (6, 4)]),
    "addmm, transposed": (lambda b, x, w: torch.addmm(b, x.tanh().mT, w.mT), [(4,), (6, 1), (4, 6)]),
    "addmm, one column": (lambda b, x, w: torch.addmm(b, x.tanh(), w), [(1,), (3, 6), (6, 1)]),
    "baddbmm": (lambda b, x, w: torch.baddbmm(b, x.tanh(), w), [(4,), (2, 1, 6), (2, 6, 4)]),
    "bmm": (lambda x, w: x.tanh() @ w, [(2, 1, 6), (2, 6, 4)]),
    "broadcast": (lambda x, w: x.tanh() @ w, [(1, 1, 3, 6), (2, 6, 1)]),
    "rows inside": (lambda x, w: x.tanh() @ w, [(2, 1, 1, 6), (6, 4)]),
    "einsum": (lambda x, w: torch.einsum("bti,oi->bto", x.tanh(), w), [(1, 3, 6), (4, 6)]),
    "convolution": (lambda x, w, b: functional.conv2d(x.tanh(), w, b), [(1, 3, 3, 6), (1, 3, 3, 3), (1,)]),
}


@pytest.mark.parametrize("case", mostly_at_night(OF_SIZE_ONE, by_day=("linear, one row", "broadcast", "rows inside")))
def test_dimensions_of_size_one_have_the_strides_of_eager(case: str) -> None:
    function, shapes = OF_SIZE_ONE[case]
    arguments = [random(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    found, expected = opwright.operator(function)(*arguments), function(*arguments)
    assert found.stride() == expected.stride()
    cotangent = torch.rand_like(expected)
    gradients = [torch.autograd.grad(made, arguments, cotangent) for made in (found, expected)]
    for gradient, like in zip(*gradients, strict=True):
        assert gradient.stride() == like.stride()


@opwright.operator
def viewed(x):
    return (x * 2).view(-1) + 1


@opwright.operator
def reshaped_before(x):
    return (x * 2).reshape(-1) + 1


@pytest.mark.falls_back
@pytest.mark.parametrize("gradient", [False, True])
def test_a_view_that_eager_refuses_is_refused_after_one_that_it_takes(gradient):
    dense, across = random(3, 4, gradient=gradient), random(4, 3, gradient=gradient).t()
    assert torch.equal(viewed(dense), viewed.reference(dense))
    assert viewed.last_rung == "cpp"
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        viewed(across)
    assert torch.equal(viewed(dense), viewed.reference(dense))
    assert viewed.last_rung == "cpp"
    assert torch.equal(reshaped_before(across), reshaped_before.reference(across))
    assert reshaped_before.last_rung == "cpp"


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_results_and_gradients_lie_as_in_eager_in_anomaly_mode() -> None:
    operator = Operator(functional.gelu, name="strides::in_anomaly_mode", settings=quiet_settings(optimized=False))
    found = []
    with torch.autograd.detect_anomaly():
        for function in (operator, functional.gelu):
            x = transposed(3, 4)
            made = function(x)
            (gradient,) = torch.autograd.grad(made.sum(), x)
            found.append((made.stride(), gradient.stride()))
    assert found[0] == found[1] == ((1, 3), (1, 3))
    assert operator.last_rung == "cpp"


def halved(x: Tensor) -> Tensor:
    return (x * 2).reshape(2, -1) * 3


def turned(x: Tensor) -> Tensor:
    return (x * 2).reshape(*x.shape[::-1]) * 3


REGROUPED = {
    "a copy, then a view": (halved, [(4, 6), (2, 5), (4, 3)]),
    "a view, then a copy": (halved, [(2, 5), (4, 6), (2, 3)]),
    "the sizes exchanged, then equal": (turned, [(4, 6), (4, 4), (3, 5)]),
    "equal sizes, then others": (turned, [(4, 4), (4, 6), (3, 3)]),
}


@pytest.mark.parametrize("case", REGROUPED)
@pytest.mark.parametrize("gradient", [False, True])
def test_a_reshape_is_a_view_or_a_copy_by_the_sizes_of_each_call(case: str, gradient: bool) -> None:
    function, shapes = REGROUPED[case]
    operator = Operator(function, name=f"strides::{function.__name__}", settings=quiet_settings(optimized=False))
    for shape in shapes:
        assert_as_eager(operator, transposed(*shape).detach().requires_grad_(gradient), order=int(gradient))
        assert operator.last_rung == "cpp"
