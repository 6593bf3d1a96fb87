"""What a function closes over is an argument of its operator: functions defined anew share one."""

import functools
import gc
import weakref

import pytest
import torch

from opwright import func
from opwright.func.opened import NOTHING, opened
from tests.func.functions import W, X, loss, random

pytestmark = pytest.mark.built_together


def closing_over(x, scale=2.0):
    def inner(w):
        return loss(w, x) * scale

    return lambda w: inner(w) + w.sum()


def test_functions_that_differ_in_their_tensors_share_an_operator():
    gradients = [func.grad(closing_over(x)) for x in (X, X + 1)]
    for gradient, x in zip(gradients, (X, X + 1), strict=True):
        torch.testing.assert_close(gradient(W), torch.func.grad(closing_over(x))(W))
    assert gradients[0].operator is gradients[1].operator
    assert gradients[0].operator.last_rung == "cpp"
    torch.testing.assert_close(func.vmap(gradients[0])(W[None]), torch.func.grad(closing_over(X))(W)[None])


def test_a_variable_is_read_at_every_call():
    x = X

    def of(w):
        return loss(w, x)

    gradient = func.grad(of)
    before, x = gradient(W), X * 2
    torch.testing.assert_close((before, gradient(W)), tuple(torch.func.grad(loss)(W, x) for x in (X, X * 2)))


def test_closed_tensors_have_gradients():
    leaf = X.clone().requires_grad_()
    found = [t.grad(closing_over(leaf))(W) for t in (func, torch.func)]
    torch.testing.assert_close(*[torch.autograd.grad(g.sum(), leaf)[0] for g in found])


def test_closed_tensors_are_not_kept_alive():
    x = X * 3
    seen = weakref.ref(x)
    of, partial = closing_over(x), functools.partial(loss, x=x)
    func.grad(of)(W), func.grad(partial)(W)
    del x, of, partial
    gc.collect()
    assert seen() is None


def recursive(depth):
    def down(w, depth=depth):
        return w.sin().sum() if depth == 0 else down(w * 2, depth - 1)

    return down


WAYS = {
    "partial": lambda: functools.partial(loss, x=X),
    "partial by position": lambda: functools.partial(lambda x, w: loss(w, x), X),
    "default": lambda: lambda w, x=X: loss(w, x),
    "keyword default": lambda: lambda w, *, x=X: loss(w, x),
    "dict": lambda: (lambda given: lambda w: loss(w, given["x"]) * given["scale"])({"x": X, "scale": 3.0}),
    "recursive": lambda: recursive(2),
    "bound method": lambda: Holder(2.0).loss,
}


class Holder:
    def __init__(self, scale):
        self.scale = scale

    def loss(self, w):
        return w.pow(2).sum() * self.scale


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_every_way_to_close_over_data(way):
    torch.testing.assert_close(func.grad(way())(W), torch.func.grad(way())(W))


def test_what_a_function_assigns_stays_its_own():
    def counting():
        calls = 0

        def of(w):
            nonlocal calls
            calls += 1
            return w.sum() * calls

        return of

    of = counting()
    assert opened(of).data is NOTHING
    unset = (lambda: lambda w: w + later)()  # noqa: F821 - that is the point
    assert opened(unset).data is NOTHING


def test_data_are_put_back_as_they_were():
    function = functools.partial(closing_over(X, 3.0), random(4, seed=8))
    found = opened(function)
    assert opened(functools.partial(closing_over(X * 2, 4.0), W)).key == found.key
    assert opened(functools.partial(closing_over(X), W, W)).key != found.key
    assert found.close(found.data)() == function()
