"""What pulls gradients back draws the numbers of the forward pass, however often and under whatever it is called."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.built_together,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def noisy(x: Tensor) -> Tensor:
    return (x.sin() * torch.randn(x.shape, dtype=x.dtype) + torch.rand_like(x)) * x


def dropped(x: Tensor) -> Tensor:
    return functional.dropout(x.sin() * x, 0.3)


def square(x: Tensor) -> Tensor:
    return x * x


def with_one_normal_number(x: Tensor) -> Tensor:
    return torch.randn_like(x) * x * x


X = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4)


def pulled_back_twice(f):
    _, pull = torch.func.vjp(f, X)
    between = torch.rand(3)
    return pull(X), between, pull(X.cos())


def jacobian(f):
    return torch.func.jacrev(f)(X)


def jacobian_of_jacobian(f):
    return torch.func.jacrev(torch.func.jacrev(f))(X)


def hessian(f):
    return torch.func.jacfwd(torch.func.jacrev(f), randomness="same")(X)


def jacobians_over_a_batch(f):
    return torch.vmap(torch.func.jacrev(f), randomness="different")(X)


def jacobian_of_a_batch(f):
    return torch.func.jacrev(torch.vmap(f, randomness="different"))(X)


def gradients_over_a_batch(f):
    return torch.vmap(torch.func.grad(lambda row: f(row).sum()), randomness="different")(X)


def gradient_of_a_batch(f):
    return torch.func.grad(lambda rows: torch.vmap(f, randomness="same")(rows).sum())(X)


def jacobian_among_gradients(f):
    """Levels of both kinds begin after the draw, one inside of the other."""
    return torch.func.grad(lambda x: torch.func.jacrev(f)(x).square().sum())(X)


def mapped_backward_passes(f):
    leaf = X.clone().requires_grad_()
    output = f(leaf)
    given = torch.stack([torch.ones_like(output), output.detach()])
    return torch.vmap(lambda cotangents: torch.autograd.grad(output, leaf, cotangents, retain_graph=True))(given)


def batched_backward_pass(f):
    leaf = X.clone().requires_grad_()
    output = f(leaf)
    given = torch.stack([torch.ones_like(output), output.detach()])
    return torch.autograd.grad(output, leaf, given, is_grads_batched=True)


TRANSFORMS = [
    pulled_back_twice, jacobian, jacobian_of_jacobian, hessian, jacobians_over_a_batch, jacobian_of_a_batch,
    gradients_over_a_batch, gradient_of_a_batch, jacobian_among_gradients, mapped_backward_passes,
    batched_backward_pass,
]  # fmt: skip


BY_DAY = (jacobian_of_jacobian, gradients_over_a_batch, batched_backward_pass)


@pytest.mark.falls_back
@pytest.mark.parametrize("function", [noisy, pytest.param(dropped, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("transform", mostly_at_night(TRANSFORMS, BY_DAY))
def test_the_numbers_are_those_that_eager_has_drawn(make, function, transform):
    found = []
    for candidate in (make(function), function):
        torch.manual_seed(0)
        found.append((transform(candidate), torch.rand(3)))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("transform", [jacobian, gradients_over_a_batch])
def test_what_a_gpu_draws_is_left_to_the_reference(make, transform, monkeypatch):
    monkeypatch.setattr("opwright.binding.transforms.other_draws._DEVICES", ("meta",))  # as if the processor were a GPU
    for function, rung in ((noisy, "composed"), (square, "cpp")):
        operator, found = make(function), []
        for candidate in (operator, function):
            torch.manual_seed(0)
            found.append((transform(candidate), torch.rand(3)))
        torch.testing.assert_close(*found)
        assert operator.last_rung == rung


def test_what_draws_for_a_batch_says_how(make):
    for function in (make(noisy), noisy):
        with pytest.raises(RuntimeError, match="randomness"):
            torch.vmap(function)(X)
        with pytest.raises(RuntimeError, match="randomness"):
            torch.vmap(torch.func.grad(lambda x, f=function: f(x).sum()))(X)


def test_normal_numbers_are_noticed_of_which_the_generator_holds_one_back(make):
    """After an odd count of them the next one is ready, and is drawn without a step of the generator."""
    noise = make(with_one_normal_number)
    torch.manual_seed(0)
    torch.randn(1, dtype=torch.float64)
    state = torch.get_rng_state()
    found = torch.func.grad(lambda x: noise(x).sum())(X[0, :1])
    torch.set_rng_state(state)
    torch.testing.assert_close(found, 2 * X[0, :1] * torch.randn(1, dtype=torch.float64))
