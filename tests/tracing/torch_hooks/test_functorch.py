"""The hooks behind torch's levels say what they are asked, on the torch at hand."""

import pytest
import torch
from torch.autograd import forward_ad

from opwright.tracing.torch_hooks import functorch
from opwright.tracing.torch_hooks.functorch import Transform

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

X = torch.arange(6.0).reshape(2, 3)


def seen_under(transform, look):
    """What `look` finds of the argument, inside of a transform."""
    found = []

    def function(x):
        found.append(look(x))
        return x.sum()

    transform(function)
    return found[0]


def grad(function):
    torch.func.grad(function)(X)


def jvp(function):
    torch.func.jvp(function, (X,), (X,))


def vmap(function):
    torch.vmap(function)(X)


@pytest.mark.parametrize(
    ("transform", "expected"), [(grad, Transform.GRAD), (jvp, Transform.JVP), (vmap, Transform.VMAP)]
)
def test_the_innermost_level_says_what_it_does(transform, expected):
    assert not functorch.are_active()
    assert seen_under(transform, lambda _: (functorch.are_active(), functorch.innermost().transform)) == (
        True,
        expected,
    )
    assert not functorch.are_active()


@pytest.mark.parametrize(("transform", "expected"), [(grad, True), (jvp, True), (vmap, False)])
def test_whether_a_transform_differentiates(transform, expected):
    assert not functorch.is_differentiating()
    assert seen_under(transform, lambda _: functorch.is_differentiating()) is expected
    inside = seen_under(transform, lambda _: seen_under(vmap, lambda _: functorch.is_differentiating()))
    assert inside is expected


def test_below_a_level_is_the_one_before_it():
    def look(_):
        with functorch.innermost().below():
            return functorch.are_active()

    assert seen_under(grad, look) is False
    assert seen_under(grad, lambda _: seen_under(vmap, look)) is True


@pytest.mark.parametrize("began_on", [True, False])
def test_derivatives_are_off_below_a_level_that_began_without_them(began_on):
    def of_gradients(_):
        with functorch.innermost().below():
            inside = torch.is_grad_enabled()
        return inside, torch.is_grad_enabled()

    def of_tangents(_):
        with functorch.innermost().below():
            inside = torch._C._is_fwd_grad_enabled()
        return inside, torch._C._is_fwd_grad_enabled()

    with torch.set_grad_enabled(began_on):
        assert seen_under(grad, of_gradients) == (began_on, True)
    with forward_ad._set_fwd_grad_enabled(began_on):
        assert seen_under(jvp, of_tangents) == (began_on, True)


@pytest.mark.parametrize("transform", [grad, jvp])
def test_what_is_differentiated_is_wrapped_at_its_level(transform):
    def look(x):
        level = functorch.innermost()
        below = level.unwrap(x)
        constant = level.lift(X)
        again = level.wrap(below)
        return level.has(x), level.has(X), level.has(below), level.has(constant), level.has(again), below

    *has, below = seen_under(transform, look)
    assert has == [True, False, False, True, True]
    torch.testing.assert_close(below, X)


def test_the_batch_comes_off_and_on_again():
    def look(x):
        level = functorch.innermost()
        value, dimension = level.unbatched(x)
        return value.shape, dimension, level.add_batch(value).shape, level.unbatched(X)[1]

    assert seen_under(vmap, look) == (X.shape, 0, X.shape[1:], None)


@pytest.mark.parametrize("randomness", ["error", "different", "same"])
def test_a_batch_knows_what_to_do_with_random_numbers(randomness):
    found = seen_under(
        lambda function: torch.vmap(function, randomness=randomness)(X), lambda _: functorch.innermost().randomness
    )
    assert found == randomness


def test_what_is_left_of_a_level_is_unwrapped():
    left = []
    torch.func.grad(lambda x: (left.append(x), x.sum())[1])(X)
    torch.testing.assert_close(functorch.unwrap_dead(left[0]) + 0, X)


def test_what_all_levels_wrap_is_found():
    found = []
    torch.vmap(torch.func.grad(lambda x: (found.append(functorch.wrapped_by_levels(x)), x.sum())[1]))(X)
    assert type(found[0]) is torch.Tensor
    assert found[0].data_ptr() == X.data_ptr()


def test_a_node_can_be_recorded_at_one_level():
    class Double(torch.autograd.function._SingleLevelFunction):
        @staticmethod
        def forward(ctx, level, x):
            with level.below():
                doubled = level.unwrap(x) * 2
            return level.wrap(doubled)

        @staticmethod
        def backward(ctx, cotangents):
            return None, cotangents * 2

    def function(x):
        return functorch.record_at_one_level(Double.apply, functorch.innermost(), x).sum()

    torch.testing.assert_close(torch.func.grad(function)(X), torch.full_like(X, 2))


def test_dual_tensors_are_seen():
    assert not functorch.is_forward_mode()
    with forward_ad.dual_level():
        assert functorch.is_forward_mode()
        assert functorch.is_dual(forward_ad.make_dual(X, X))
        assert not functorch.is_dual(X)
        assert not functorch.is_dual(2.0)
        with forward_ad._set_fwd_grad_enabled(False):
            assert not functorch.is_forward_mode()
    assert not functorch.is_forward_mode()


def test_an_old_batch_may_have_tangents():
    seen = []
    x = X.clone().requires_grad_()
    doubled = x * 2
    doubled.register_hook(lambda cotangents: seen.append(functorch.is_in_old_batch(cotangents)))
    torch.autograd.grad(doubled, x, torch.ones(2, 2, 3), is_grads_batched=True)
    assert seen == [True]
    assert not functorch.is_in_old_batch(X)


def test_how_many_levels_there_are():
    assert functorch.depth() == 0
    assert seen_under(vmap, lambda _: seen_under(grad, lambda _: functorch.depth())) == 2


def test_beyond_some_levels_a_batch_draws_once():
    def drawing(first):
        with functorch.drawing_alike_above(first):
            return torch.rand(2), functorch.depth()

    def under_two(x):
        return torch.vmap(lambda y: (drawing(2)[0] + 0 * y, drawing(1)[0] + 0 * y), randomness="different")(x)

    inner, outer = torch.vmap(under_two, randomness="different")(torch.zeros(2, 3, 1))
    assert len(inner.reshape(6, 2).unique(dim=0)) == 6
    assert len(outer[:, 0].unique(dim=0)) == 2
    assert (outer == outer[:, :1]).all()
    assert seen_under(grad, lambda _: seen_under(vmap, lambda _: drawing(0)[1])) == 2
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda x: torch.rand(2) + drawing(0)[0] + x.sum())


def test_levels_are_as_before_once_drawing_has_failed():
    def function(x):
        with pytest.raises(ArithmeticError), functorch.drawing_alike_above(0):
            raise ArithmeticError
        return x.sin().sum()

    torch.testing.assert_close(torch.func.grad(function)(X), X.cos())
