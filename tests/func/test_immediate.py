"""`vjp`, `jvp` and `linearize`: results, what stays differentiable, and calls that kernels do not serve."""

from contextlib import contextmanager

import pytest
import torch

from opwright import func
from opwright.binding.variants.states import OutsideChanged
from tests.func.functions import TREE, W, X, loss, of_tree, rows
from tests.suite.nights import mostly_at_night

pytestmark = [pytest.mark.built_together, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

CALLS = {
    "vjp": lambda t, w, x: (lambda found: (found[0], *found[1](X[:, 0])))(t.vjp(rows, w, x)),
    "vjp of one": lambda t, w, x: (lambda found: (found[0], *found[1](X[:, 0])))(t.vjp(lambda x: rows(w, x), x)),
    "vjp of a cotangent": lambda t, w, x: t.vjp(torch.sin, W)[1](w),
    "jvp": lambda t, w, x: t.jvp(rows, (w, x), (W, X)),
}


@contextmanager
def refusal_allowed(*words):
    """Let a block raise an error that says one of these."""
    try:
        yield
    except (RuntimeError, OutsideChanged) as error:
        if not any(each in str(error) for each in words):
            raise


def flat(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", mostly_at_night(CALLS, by_day=("vjp", "jvp")))
def test_results_are_as_differentiable_as_torchs(name):
    call = CALLS[name]
    found, expected = [], []
    for transforms, into in ((func, found), (torch.func, expected)):
        leaf = W.clone().requires_grad_()
        results = flat(call(transforms, leaf, X))
        into += [result.requires_grad for result in results]
        into += torch.autograd.grad(sum(r.pow(2).sum() for r in results if r.requires_grad), leaf)
        with torch.no_grad():
            into += [result.requires_grad for result in flat(call(transforms, leaf, X))]
    torch.testing.assert_close(found, expected)


def test_the_cotangents_of_a_batch():
    _, pull = func.vjp(rows, W, X)
    _, expected = torch.func.vjp(rows, W, X)
    batch = torch.eye(len(X), dtype=X.dtype)
    torch.testing.assert_close(torch.func.vmap(pull)(batch), torch.func.vmap(expected)(batch))
    torch.testing.assert_close(
        torch.func.jvp(pull, (batch[0],), (batch[1],)), torch.func.jvp(expected, (batch[0],), (batch[1],))
    )


def test_vjp_draws_once():
    torch.manual_seed(0)
    output, pull = func.vjp(lambda x: x * torch.rand_like(x), X)
    torch.testing.assert_close(pull(X)[0], output)


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # from torch.func.linearize
@pytest.mark.parametrize(("function", "primals"), [(rows, (W, X)), (of_tree, (TREE,))])
def test_linearize(function, primals):
    found, expected = (t.linearize(function, *primals) for t in (func, torch.func))
    torch.testing.assert_close((found[0], found[1](*primals)), (expected[0], expected[1](*primals)))


def test_a_linear_function_keeps_its_point():
    point = W.clone()
    push = func.linearize(torch.sin, point)[1]
    point.zero_()
    torch.testing.assert_close(push(W), W.cos() * W)


SCALE, TABLE = 2.0, {"scale": 2.0}


class Settings:
    scale = 2.0


def change_global():
    global SCALE
    SCALE = 7.0


OUTSIDE = {
    "nothing": (lambda x, _: (x * SCALE).sin(), lambda held: None),
    "a global": (lambda x, _: (x * SCALE).sin(), lambda held: change_global()),
    "an attribute of a class": (lambda x, _: (x * Settings.scale).sin(), lambda held: setattr(Settings, "scale", 7.0)),
    "a dict": (lambda x, _: (x * TABLE["scale"]).sin(), lambda held: TABLE.update(scale=7.0)),
    "a variable of a closure": (lambda x, held: (x * held["number"]).sin(), lambda held: held.update(number=7.0)),
    "a closed tensor, in place": (lambda x, held: (x * held["tensor"]).sin(), lambda held: held["tensor"].mul_(7)),
    "another closed tensor": (lambda x, held: (x * held["tensor"]).sin(), lambda held: held.update(tensor=7 * W)),
}


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # from torch.func.linearize
@pytest.mark.parametrize("what", OUTSIDE)
@pytest.mark.parametrize("name", ["linearize", "vjp"])
def test_derivatives_after_a_change_outside_are_torchs_or_an_error(name, what, monkeypatch):
    reads, change = OUTSIDE[what]

    def derivative(transforms):
        monkeypatch.setitem(globals(), "SCALE", 2.0)
        monkeypatch.setitem(TABLE, "scale", 2.0)
        monkeypatch.setattr(Settings, "scale", 2.0)
        held = {"number": 2.0, "tensor": W.clone()}
        number, tensor = held["number"], held["tensor"]

        def of(x):
            return reads(x, {"number": number, "tensor": tensor})

        _, apply = getattr(transforms, name)(of, X[0])
        change(held)
        number, tensor = held["number"], held["tensor"]
        (found,) = flat(apply(W))
        return found

    expected = derivative(torch.func)
    with refusal_allowed("changed since the call", "modified by an inplace operation"):
        torch.testing.assert_close(derivative(func), expected)
        return
    assert what not in ("nothing", "another closed tensor", "a variable of a closure")


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # from torch.func.linearize
def test_a_linear_function_of_what_cannot_be_compared_keeps_its_values():
    numbers = iter([2.0, 2.0, 5.0, 7.0])
    output, push = func.linearize(lambda x: (x * next(numbers)).sin(), W)
    assert torch.equal(push(X[0]), push(X[0]))
    assert output.shape == W.shape


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # from torch.func.linearize
@pytest.mark.parametrize("primal_is_tracked", [False, True])
def test_the_tangents_of_a_linear_function_have_gradients_for_its_tangents_alone(primal_is_tracked):
    def gradients(transforms):
        primal, closed = W.clone().requires_grad_(primal_is_tracked), X[0].clone().requires_grad_()
        tangent = X[1].clone().requires_grad_()
        _, push = transforms.linearize(lambda w: (w * closed).sin(), primal)
        sources = [closed, tangent, *([primal] if primal_is_tracked else [])]
        return torch.autograd.grad(push(tangent).sum(), sources, allow_unused=True)

    torch.testing.assert_close(gradients(func), gradients(torch.func))


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # from torch.func.linearize
@pytest.mark.parametrize("function", [lambda x: x * torch.rand_like(x), lambda x: torch.dropout(x, 0.5, True) * x])
def test_linearize_draws_what_torch_draws(function):
    def drawn(transforms):
        torch.manual_seed(0)
        output, push = transforms.linearize(function, X)
        return output, push(X), push(X), torch.rand(2)

    torch.testing.assert_close(drawn(func), drawn(torch.func))


def test_transforms_of_torch_around():
    stacked = torch.stack([W, W + 1]), torch.stack([X, X + 1])
    pairs = [
        [torch.func.vmap(lambda w, x, t=t: t.jvp(loss, (w, x), (w, x)))(*stacked) for t in (func, torch.func)],
        [torch.func.grad(lambda w, t=t: t.vjp(loss, w, X)[1](W.sum())[0].sum())(W) for t in (func, torch.func)],
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected)


@pytest.mark.falls_back
def test_vjp_of_a_module_leaves_its_parameters_differentiable():
    layer = torch.nn.Linear(4, 1, dtype=X.dtype)
    output, pull = func.vjp(lambda x: layer(x), X)
    assert output.requires_grad
    torch.testing.assert_close(pull(torch.ones_like(output))[0], layer.weight.expand_as(X))
    assert not func.vjp(lambda x: x if x.sum() > 0 else -x, X)[0].requires_grad


def test_inference_mode():
    with torch.inference_mode():
        inside = W.clone()
        _, pull = func.vjp(rows, W, X)
        torch.testing.assert_close(pull(X[:, 0]), torch.func.vjp(rows, W, X)[1](X[:, 0]))
    torch.testing.assert_close(func.vjp(torch.sin, inside)[1](inside), torch.func.vjp(torch.sin, inside)[1](inside))


KEPT = {"result": torch.exp, "argument": torch.sin, "between": lambda x: torch.tanh(torch.sin(2 * x)), "both": rows}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("changed", ["primal", "closed tensor", "result"])
@pytest.mark.parametrize("kept", KEPT)
def test_gradients_after_a_change_in_place_are_torchs_or_an_error(kept, changed, tracked):
    function = KEPT[kept]

    def pulled(transforms):
        w, x = W.clone().requires_grad_(tracked), X.clone()
        of = (lambda w: rows(w, x)) if kept == "both" else lambda w: function(w) * x[0]
        result, pull = transforms.vjp(of, w)
        with torch.no_grad():
            {"primal": w, "closed tensor": x, "result": result}[changed].detach().mul_(3)
        return pull(torch.ones_like(result))[0]

    expected = pulled(torch.func)
    with refusal_allowed("modified by an inplace operation"):
        torch.testing.assert_close(pulled(func), expected)


def test_vjp_is_recorded_without_a_level(monkeypatch):
    monkeypatch.setattr(torch.func, "vjp", None)
    closed = X.clone()
    for function, primals in ((rows, (W, X)), (lambda w: rows(w, closed), (W,)), (of_tree, (TREE,))):
        result, pull = func.vjp(function, *primals)
        assert pull(torch.ones_like(result))
