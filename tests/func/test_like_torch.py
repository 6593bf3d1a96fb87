"""Every transform gives what `torch.func` gives, however they nest, by kernels of one operator."""

import pytest
import torch

import opwright
from opwright import Operator, func
from tests.func.functions import TREE, W, X, loss, of_tree, random, rows, two, with_aux
from tests.suite.nights import mostly_at_night

pytestmark = [pytest.mark.built_together, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def pulled(transforms, function, *primals, cotangents):
    output, pull, *aux = transforms.vjp(function, *primals)
    return output, pull(cotangents), aux


# `(transforms, the module func or torch.func) -> results`.
CASES = {
    "grad": lambda t: t.grad(loss, argnums=(1, 0))(W, X),
    "grad, has_aux": lambda t: t.grad(with_aux, has_aux=True)(W, X),
    "grad, trees and keywords": lambda t: t.grad(of_tree)(TREE, scale=3.0),
    "grad_and_value": lambda t: t.grad_and_value(with_aux, has_aux=True)(W, X),
    "vmap": lambda t: t.vmap(two, in_dims=(None, 0), out_dims=(0, 1))(W, X),
    "vmap, trees and keywords": lambda t: t.vmap(lambda d, s: d["x"] * d["w"] * s, ({"x": 1, "w": None},))(
        {"x": X, "w": X[:, 0]}, s=X.mT.contiguous()
    ),
    "vmap, chunks": lambda t: t.vmap(torch.sin, chunk_size=4)(X),
    "jacrev": lambda t: t.jacrev(rows, argnums=(0, 1))(W, X),
    "jacrev, chunks": lambda t: t.jacrev(rows, chunk_size=5)(W, X),
    "jacfwd": lambda t: t.jacfwd(rows, argnums=(0, 1))(W, X),
    "hessian": lambda t: t.hessian(of_tree)(TREE),
    "vjp": lambda t: pulled(t, two, W, X, cotangents=(W.sum(), W)),
    "jvp": lambda t: t.jvp(with_aux, (W, X), (W + 1, X), has_aux=True),
    "jvp, trees": lambda t: t.jvp(of_tree, (TREE,), (TREE,)),
    "per-sample gradients": lambda t: t.vmap(t.grad(loss), in_dims=(None, 0))(W, X),
    "Hessians of a batch": lambda t: t.vmap(t.hessian(loss), in_dims=(None, 0))(W, X),
    "Hessian of a sum": lambda t: t.hessian(lambda w, x: t.vmap(loss, in_dims=(None, 0))(w, x).sum())(W, X),
    "Hessian by vector": lambda t: t.jvp(lambda w, x: t.vjp(loss, w, x)[1](w.new_ones(()))[0], (W, X), (W, X)),
    "forward over forward": lambda t: t.jacfwd(t.jacfwd(loss))(W, X),
    "of norms": lambda t: t.hessian(lambda x, w: torch.nn.functional.layer_norm(x, (4,), w).pow(3).sum())(X[0], W),
}


@pytest.mark.parametrize("case", mostly_at_night(CASES, by_day=[*CASES][::4]))
def test_it_gives_what_torch_gives(case):
    torch.testing.assert_close(CASES[case](func), CASES[case](torch.func))


def test_results_are_operators_made_once():
    per_sample = func.vmap(func.grad(loss), in_dims=(None, 0))
    assert isinstance(per_sample, Operator)
    assert per_sample.name == "opwright::vmap_grad_loss"
    assert per_sample is func.vmap(func.grad(loss), in_dims=(None, 0))
    assert per_sample is not func.vmap(func.grad(loss), in_dims=(None, False))
    per_sample(W, X)
    assert per_sample.last_rung == "cpp"


def test_options_are_those_of_the_time_of_definition():
    def of_dict(given):
        return loss(given["w"], given["x"])

    dims = {"w": None, "x": 0}
    mapped = func.vmap(of_dict, (dims,))
    dims["w"] = 0
    given = {"w": W, "x": X}
    torch.testing.assert_close(mapped(given), torch.func.vmap(of_dict, ({"w": None, "x": 0},))(given))


def test_value_and_grad_swaps_grad_and_value():
    (value, aux), gradient = func.value_and_grad(with_aux, has_aux=True)(W, X)
    expected = torch.func.grad_and_value(with_aux, has_aux=True)(W, X)
    torch.testing.assert_close((gradient, (value, aux)), expected)


def test_a_transformed_operator_is_differentiable_and_transformable():
    gradient, leaf = func.grad(loss), W.clone().requires_grad_()
    found, expected = (torch.autograd.grad(g(leaf, X).pow(2).sum(), leaf) for g in (gradient, torch.func.grad(loss)))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.func.vmap(gradient, (None, 0))(W, X), torch.func.vmap(torch.func.grad(loss), (None, 0))(W, X)
    )
    with torch.no_grad():
        assert not gradient(leaf, X).requires_grad


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers_are_drawn_as_torch_draws_them(randomness):
    def noisy(x):
        return x * torch.randn_like(x)

    def drawn(transforms):
        torch.manual_seed(3)
        return transforms.vmap(noisy, randomness=randomness)(X)

    torch.testing.assert_close(drawn(func), drawn(torch.func), rtol=0, atol=0)


def test_operators_are_transformed_too():
    operator = opwright.operator(loss)
    torch.testing.assert_close(func.grad(operator)(W, X), torch.func.grad(loss)(W, X))
    torch.testing.assert_close(func.vjp(operator, W, X)[0], loss(W, X))


def test_a_compiler_sees_torchs_own_transforms():
    def step(w, x):
        return func.vmap(func.grad(loss), in_dims=(None, 0))(w, x) + func.jvp(loss, (w, x), (w, x))[1]

    compiled = torch.compile(step, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(W, X), step(W, X))


def test_an_operator_of_a_wrapper_of_torchs_leaves_torch_alone():
    hessian = torch.func.hessian(lambda x: x.pow(3).mul(torch.arange(4)).sum())
    torch.testing.assert_close(opwright.operator(hessian)(W), hessian(W))  # it changes torch's globals meanwhile


def test_layers_and_classes_of_stacked_rows():
    def of(weight, bias, x):
        scores = torch.nn.functional.linear(x[None], weight, bias).reshape(-1, 3)
        return torch.nn.functional.cross_entropy(scores, torch.zeros(6, dtype=torch.long))

    args = random(3, 4, seed=4), random(3, seed=5), X
    torch.testing.assert_close(func.grad(of, (0, 1))(*args), torch.func.grad(of, (0, 1))(*args))


def test_tangents_of_inner_values_may_lie_in_another_order():
    x = random(3, 2)
    found, expected = (t.hessian(lambda x: (x.mT @ x).exp().sum())(x) for t in (func, torch.func))
    torch.testing.assert_close(found, expected)
