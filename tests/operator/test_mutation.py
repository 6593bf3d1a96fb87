"""Operators that change arguments: values, identities, versions and gradients as in eager."""

import pytest
import torch
from torch import Tensor

import opwright
from opwright.errors import NoKernel
from opwright.tracing.interface.memory import may_overlap_itself
from tests.operator.against_eager import random

pytestmark = pytest.mark.built_together


@opwright.operator(mutates=("x",))
def scaled_(x: Tensor, y: Tensor, factor: float = 2.0) -> Tensor:
    x.mul_(y).add_(1)
    return x


@opwright.operator(mutates=("average", "square"))
def averaged_(average: Tensor, square: Tensor, gradient: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    average.mul_(beta).add_(gradient, alpha=1 - beta)
    square.mul_(beta).add_(gradient * gradient)
    return average / (square.sqrt() + 1), square


@opwright.operator(mutates=("x",))
def views_(x: Tensor) -> Tensor:
    x[0] = 7.0
    return x[1:]


@opwright.operator(mutates=("x",))
def nothing_(x: Tensor, y: Tensor) -> Tensor:
    return x + y


@opwright.operator(mutates=("x",))
def added_(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y)
    return (x * 2).exp()


@opwright.operator(mutates=("mean", "variance"))
def normalized_(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    return torch.nn.functional.batch_norm(x, mean, variance, training=True)


def eager_and_ours(operator, make):
    return [make(function) for function in (operator.reference, operator)]


def assert_same(operator, make, rung="cpp"):
    expected, actual = eager_and_ours(operator, make)
    assert operator.last_rung == rung
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other)
        if isinstance(one, Tensor):
            assert one.requires_grad == other.requires_grad


def test_without_gradients():
    def make(function):
        x, y = random(4, gradient=False), random(4, seed=1, gradient=False)
        version = x._version
        result = function(x, y)
        assert result is x
        assert x._version > version
        return [x, y]

    assert_same(scaled_, make)


def test_two_arguments_and_a_number():
    def make(function):
        average, square = torch.zeros(4), torch.ones(4)
        results = []
        for step, beta in enumerate((0.9, 0.8, 0.99, 0.9)):
            result, same = function(average, square, random(4, seed=step, gradient=False), beta)
            assert same is square
            results += [result, average.clone(), square.clone()]
        return results

    assert_same(averaged_, make)


@pytest.mark.falls_back
@pytest.mark.parametrize("leaf", ["x", "y", "both"])
def test_gradients(leaf):
    def make(function):
        x, y = random(4, gradient=leaf != "y"), random(4, seed=1, gradient=leaf != "x")
        changed = x * 3 if leaf != "y" else x.clone()
        result = function(changed, y)
        assert result is changed
        wanted = [tensor for tensor in (x, y) if tensor.requires_grad]
        first = torch.autograd.grad((result * result.sin()).sum(), wanted, create_graph=True)
        second = torch.autograd.grad(sum((g * g).sum() for g in first), wanted)
        return [result, *first, *second]

    assert_same(scaled_, make)


def test_a_slice_of_a_larger_tensor_is_changed_in_it():
    def make(function):
        base, y = random(4, 6), random(4, 3, seed=1, gradient=False)
        whole = base * 2
        function(whole[:, ::2], y)
        return [whole, *torch.autograd.grad(whole.sin().sum(), base)]

    assert_same(scaled_, make)


def test_a_value_that_was_saved_is_missed_as_in_eager():
    for function in (scaled_.reference, scaled_):
        x = random(4)
        changed = x.sin()
        later = changed.exp() * changed
        function(changed, torch.ones(4))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            later.sum().backward()


def test_a_leaf_is_not_changed():
    with pytest.raises(RuntimeError) as expected:
        scaled_.reference(random(4), random(4))
    x = random(4)
    with pytest.raises(RuntimeError, match=str(expected.value)):
        scaled_(x, random(4))
    torch.testing.assert_close(x, random(4))


@pytest.mark.parametrize("overlap", ["same", "view", "expanded"])
def test_arguments_that_share_memory_are_the_references(overlap):
    def make(function):
        x = random(4, gradient=False)
        if overlap == "expanded":
            with pytest.raises(RuntimeError):
                function(x[:1].expand(4), x)
            return [x]
        function(x, x if overlap == "same" else x.view(2, 2).view(4))
        return [x]

    assert_same(scaled_, make, rung="composed")


@pytest.mark.parametrize(("sizes", "strides"), [((3, 4), (2, 1)), ((2, 2), (1, 1)), ((4, 3), (1, 3))])
def test_elements_in_one_place_are_the_references(sizes, strides):
    """What eager makes of them depends on the order in which it goes through them."""
    for _ in range(2):
        added_(random(4, 6, gradient=False)[:, ::2], random(3, gradient=False))  # kernels take what leaves gaps
        assert added_.last_rung == "cpp"

    def make(function):
        x = random(12, gradient=False)
        function(x.as_strided(sizes, strides), random(sizes[-1], gradient=False))
        return [x]

    for _ in range(2):
        assert_same(added_, make, rung="composed")


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")  # threads of torch would write to that place at once
def test_statistics_in_one_place_are_the_references():
    """Torch changes these, so that kernels take them in whatever way they lie."""
    x, variance = random(5, 4, gradient=False), torch.ones(4)
    for _ in range(3):
        normalized_(x, torch.zeros(8)[::2], variance)
        assert normalized_.last_rung == "cpp"

    def make(function):
        mean = torch.zeros(1)
        return [function(x, mean.expand(4), torch.ones(4)), mean]

    for _ in range(2):
        assert_same(normalized_, make, rung="composed")


@pytest.mark.parametrize("strides", [(4, 1), (1, 3), (2, 9), (8, 2), (100, 1)])
def test_steps_that_leave_gaps_do_not_overlap(strides):
    assert not may_overlap_itself(torch.empty(400).as_strided((3, 4), strides))


@pytest.mark.falls_back
def test_a_view_of_the_changed_argument_is_the_references():
    def make(function):
        x = random(4, gradient=False)
        tail = function(x)
        tail.add_(100)
        return [x]

    assert_same(views_, make, rung="composed")


def test_a_kernel_that_was_asked_for_raises_instead():
    x = random(4, gradient=False)
    with pytest.raises(NoKernel):
        views_.on("cpp")(x)


def test_what_is_named_and_not_changed_stays():
    def make(function):
        x, y = random(4, gradient=False), random(4)
        return [function(x, y), x]

    expected, actual = eager_and_ours(nothing_, make)
    torch.testing.assert_close(actual, expected)


# What gives an argument another shape, another order in memory, or other memory.
RESHAPING = {
    "unsqueezed": lambda x: x.unsqueeze_(0),
    "squeezed": lambda x: x.unsqueeze_(0).squeeze_(),
    "transposed": lambda x: x.t_(),
    "swapped": lambda x: x.mul_(2).swapaxes_(0, -1).add_(1),
    "strided": lambda x: x.as_strided_((2,), (1,)),
    "resized": lambda x: x.resize_(2),
    "set": lambda x: x.set_(x.sum(0)),
    "set to other memory of the same shape": lambda x: x.set_(x * 2),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("how", RESHAPING)
def test_an_argument_that_is_reshaped_is_the_references(how, size):
    changing = RESHAPING[how]

    def reshaped_(x: Tensor, more: list[Tensor]) -> Tensor:
        changing(more[0])
        return (changing(x) * more[0]).exp()

    operator = opwright.operator(reshaped_, mutates=("x", "more"))
    for _ in range(2):
        made = []
        for function in (reshaped_, operator):
            whole = [random(3, size, seed=seed, gradient=False) for seed in (0, 1)]
            given = [tensor.detach() for tensor in whole]
            made.append([function(given[0], given[1:]), *given, *whole])
        for one, other in zip(*made, strict=True):
            torch.testing.assert_close(one, other)
            assert one.stride() == other.stride()


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp"])
def test_changes_under_transforms_are_those_of_eager(transform):
    def shifted_(x: Tensor, y: Tensor) -> Tensor:
        y.add_(x.detach().mean())
        return (x * y).sin()

    def made(function):
        x, y = random(4, 3, gradient=False), random(4, 3, seed=1, gradient=False)
        if transform == "grad":
            return torch.func.grad(lambda x: function(x, y + 0 * x).sum())(x)
        if transform == "vmap":
            return torch.func.vmap(lambda x, y: function(x, y * 1))(x, y)
        return torch.func.jvp(lambda x: function(x, x * 2), (x,), (y,))

    operator = opwright.operator(shifted_, mutates=("y",))
    torch.testing.assert_close(made(operator), made(shifted_))
