"""Both ways from a level to the one below, in C++ and in Python, give what eager gives."""

import gc
import weakref

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

import opwright
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def signed(x: Tensor, weight: Tensor, scale: float = 2.0, bias: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    shifted = x * weight if bias is None else x * weight + bias
    return torch.tanh(shifted) * scale, x > 0, x * x


def refusing(x: Tensor) -> Tensor:
    return _without_a_derivative(x * 2)


def _no_derivative(cotangents: Tensor, x: Tensor) -> Tensor:
    raise ArithmeticError("nobody knows it")


@opwright.opaque(like=torch.empty_like, backward=_no_derivative)
def _without_a_derivative(x: Tensor) -> Tensor:
    return torch.from_numpy(__import__("numpy").sin(x.numpy()))


X = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4)
WEIGHT = torch.linspace(0.5, 2, 4, dtype=torch.float64)


def loss(outputs):
    return (outputs[0] * outputs[2]).sum()


def grad(f):
    return torch.func.grad(lambda x, w: loss(f(x, w)), (0, 1))(X, WEIGHT)


def grad_of_one_output(f):
    return torch.func.grad(lambda x: f(x, WEIGHT)[2].sum())(X)


def grad_of_no_output(f):
    return torch.func.grad(lambda x: (x + f(x, WEIGHT)[1]).sum())(X)


def grad_of_other_arguments(f):
    return torch.func.grad(lambda w, b: loss(f(X, w, 3.0, b)), (0, 1))(WEIGHT, WEIGHT)


def grad_where_gradients_are_off(f):
    with torch.no_grad():
        return grad(f)


def grad_around_where_gradients_are_off(f):
    return torch.func.grad(lambda x: (x * torch.no_grad()(f)(x, WEIGHT)[0]).sum())(X)


def vmap_of_grad(f):
    return torch.vmap(torch.func.grad(lambda x, w: loss(f(x, w)), (0, 1)), (0, None))(X, WEIGHT)


def vmap_along_the_last_dimension(f):
    return torch.vmap(lambda x, w: f(x, w), (1, 0), (1, 0, 1))(X, WEIGHT)


def vmap_of_nothing(f):
    return torch.vmap(lambda y: y * f(X, WEIGHT)[0])(torch.ones(2, dtype=X.dtype))


def jvp(f):
    return torch.func.jvp(lambda x: f(x, WEIGHT)[::2], (X,), (X.cos(),))


def jvp_of_nothing(f):
    return torch.func.jvp(lambda y: y * f(X, WEIGHT)[0].sum(), (X,), (X.cos(),))


def jvp_of_grad(f):
    return torch.func.jvp(torch.func.grad(lambda x: loss(f(x, WEIGHT))), (X,), (X.cos(),))


def pulled_back_twice(f):
    _, pull = torch.func.vjp(lambda x: f(x, WEIGHT)[0], X)
    return pull(X), pull(X.cos())


def pulled_back_to_a_leaf_outside(f):
    leaf = X.clone().requires_grad_()
    _, pull = torch.func.vjp(lambda x: f(x, WEIGHT)[0], leaf)
    return torch.autograd.grad(pull(X)[0].sum(), leaf)


TRANSFORMS = [
    grad, grad_of_no_output, grad_where_gradients_are_off, vmap_of_grad, vmap_of_nothing, jvp, jvp_of_grad,
    pulled_back_to_a_leaf_outside, grad_of_one_output, grad_of_other_arguments, grad_around_where_gradients_are_off,
    vmap_along_the_last_dimension, jvp_of_nothing, pulled_back_twice,
]  # fmt: skip


@pytest.mark.parametrize("transform", mostly_at_night(TRANSFORMS, by_day=6))
def test_it_gives_what_eager_gives_and_runs_on_kernels(make, transform):
    operator = make(signed)
    torch.testing.assert_close(transform(operator), transform(signed))
    assert operator.last_rung == "cpp"


def test_an_error_of_the_backward_pass_arrives_as_it_is(make):
    with pytest.raises(ArithmeticError, match="nobody knows it"):
        torch.func.grad(lambda x: make(refusing)(x).sum())(X)


def test_functionalizing_shows_the_operations_of_the_reference(make):
    operator = make(signed)
    torch.testing.assert_close(torch.func.functionalize(operator)(X, WEIGHT), signed(X, WEIGHT))
    assert operator.last_rung == "composed"


def test_nothing_is_kept_alive(make):
    operator, x = make(signed), X.clone()
    seen = weakref.ref(x)
    torch.func.grad(lambda x: loss(operator(x, WEIGHT)))(x)
    del x
    gc.collect()
    assert seen() is None


def dual(f, x, tangent):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, tangent)))


JVPS = {
    "jvp": lambda f, x, tangent: torch.func.jvp(f, (x,), (tangent,)),
    "jvp of grad": lambda f, x, tangent: torch.func.jvp(torch.func.grad(lambda x: f(x).sum()), (x,), (tangent,)),
    "jvp in vmap": lambda f, x, tangent: torch.vmap(lambda x, t: torch.func.jvp(f, (x,), (t,)))(x, tangent),
    "dual": dual,
}


@pytest.mark.parametrize("way", JVPS.values(), ids=JVPS)
def test_tangents_may_be_of_another_dtype(make, way):
    def squared(x: Tensor) -> Tensor:
        return x.tanh() * x

    operator = make(squared)
    for own, others in (
        (torch.float32, torch.float64),
        (torch.bfloat16, torch.float32),
        (torch.float64, torch.float32),
    ):
        x, tangent = X.to(own), X.cos().to(others)
        expected = tuple(way(squared, x, tangent))
        for _ in range(2):
            torch.testing.assert_close(tuple(way(operator, x, tangent)), expected)


@pytest.mark.parametrize("randomness", ["error", "different", "same"])
def test_what_has_no_batch_draws_for_each_entry(make, randomness):
    def noisy(x: Tensor) -> Tensor:
        return x * torch.rand_like(x)

    def of_each(f):
        torch.manual_seed(0)
        try:
            return torch.vmap(lambda _: f(X) * 2, randomness=randomness)(WEIGHT), torch.rand(1)
        except RuntimeError as error:
            return type(error), torch.rand(1)

    operator, expected = make(noisy), of_each(noisy)
    for _ in range(2):
        found = of_each(operator)
        assert found == expected if randomness == "error" else all(map(torch.equal, found, expected))
