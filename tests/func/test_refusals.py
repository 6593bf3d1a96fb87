"""What `torch.func` refuses is refused with the same error, and what cannot be derived runs as torch's transform."""

import pytest
import torch

import opwright
from opwright import func
from tests.func.functions import TREE, W, X, loss, of_tree, two

INTEGERS = torch.arange(4)


def linearized(transforms, *tangents):
    return transforms.linearize(loss, W, X)[1](*tangents)


def pulled(transforms, cotangents, function=loss, primals=(W, X), **options):
    return transforms.vjp(function, *primals, **options)[1](cotangents)


WRONG = {
    "grad: no scalar": lambda t: t.grad(torch.sin)(W),
    "grad: no aux": lambda t: t.grad(loss, has_aux=True)(W, X),
    "grad: argnums": lambda t: t.grad(loss, argnums=5)(W, X),
    "grad: argnums twice": lambda t: t.grad(loss, argnums=(0, 0))(W, X),
    "grad: argnums of a wrong type": lambda t: t.grad(loss, argnums="w")(W, X),
    "grad: integers": lambda t: t.grad(lambda i: (i * 2.0).sum())(INTEGERS),
    "grad: a number": lambda t: t.grad(lambda a: a)(1.0),
    "grad: only keywords": lambda t: t.grad(loss)(w=W, x=X),
    "grad: a missing argument": lambda t: t.grad(loss)(W),
    "grad: no tensor": lambda t: t.grad(lambda w: 1.0)(W),
    "grad: changes its argument": lambda t: t.grad(lambda w: w.mul_(2).sum())(W.clone()),
    "grad: no function": lambda t: t.grad(3)(W),
    "vmap: sizes": lambda t: t.vmap(loss)(W, X),
    "vmap: in_dims of a wrong type": lambda t: t.vmap(loss, in_dims="0")(W, X),
    "vmap: in_dims of another structure": lambda t: t.vmap(loss, in_dims=(0,))(W, X),
    "vmap: in_dims out of range": lambda t: t.vmap(loss, in_dims=(None, 5))(W, X),
    "vmap: nothing mapped": lambda t: t.vmap(loss, in_dims=(None, None))(W, X),
    "vmap: no arguments": lambda t: t.vmap(loss)(),
    "vmap: out_dims": lambda t: t.vmap(two, in_dims=(None, 0), out_dims=(0,))(W, X),
    "vmap: out_dims None": lambda t: t.vmap(loss, in_dims=(None, 0), out_dims=None)(W, X),
    "vmap: randomness": lambda t: t.vmap(torch.rand_like)(X),
    "vmap: randomness unknown": lambda t: t.vmap(loss, randomness="some"),
    "vmap: chunk_size": lambda t: t.vmap(loss, chunk_size=0),
    "vmap: item": lambda t: t.vmap(lambda a: a * a.sum().item())(X),
    "jacrev: chunk_size": lambda t: t.jacrev(loss, chunk_size=0),
    "jacrev: argnums": lambda t: t.jacrev(loss, argnums=9)(W, X),
    "jacfwd: argnums": lambda t: t.jacfwd(loss, argnums=9)(W, X),
    "jacfwd: no tensor": lambda t: t.jacfwd(lambda w: 1.0)(W),
    "hessian: integers": lambda t: t.hessian(lambda i: (i * 2.0).sum())(INTEGERS),
    "jvp: no tuple": lambda t: t.jvp(torch.sin, W, W),
    "jvp: structures": lambda t: t.jvp(loss, (W, X), (W,)),
    "jvp: shapes": lambda t: t.jvp(loss, (W, X), (W, W)),
    "jvp: strict": lambda t: t.jvp(lambda w: torch.ones(()), (W,), (W,), strict=True),
    "vjp: structures": lambda t: pulled(t, [W.sum(), W], two),
    "vjp: shapes": lambda t: pulled(t, W),
    "vjp: no aux": lambda t: pulled(t, W.sum(), has_aux=True),
    "vjp: aux of no tensors": lambda t: pulled(t, W, lambda w: (w.sin(), 3), (W,), has_aux=True),
    "vjp: integers": lambda t: pulled(t, W, torch.sin, (INTEGERS,)),
    "vjp: integers out": lambda t: pulled(t, W, lambda w: (w > 0).long(), (W,)),
    "vjp: a number": lambda t: pulled(t, W, torch.sin, (1.0,)),
    "linearize: shapes": lambda t: linearized(t, W, W),
    "linearize: structures": lambda t: linearized(t, W),
    "linearize: dtypes": lambda t: linearized(t, W, X.float()),
    "linearize: a number": lambda t: t.linearize(torch.sin, 1.0),
    "functional_call: no dict": lambda t: t.functional_call(torch.nn.Linear(4, 1), 3, (X,)),
    "functional_call: names twice": lambda t: t.functional_call(torch.nn.Linear(4, 1), [{"bias": W}] * 2, (X,)),
    "functional_call: strict": lambda t: t.functional_call(torch.nn.Linear(4, 1), {"bias": W[:1]}, (X,), strict=True),
    "functional_call: no module": lambda t: t.functional_call(loss, {}, (W, X)),
}


def error_of(case, transforms):
    with pytest.raises(Exception) as raised:  # noqa: PT011 - which error it is, is what is compared
        case(transforms)
    return type(raised.value), str(raised.value)


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when forward mode is first used
@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # from torch.func.linearize
@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_it_refuses_what_torch_refuses(case):
    assert error_of(case, func) == error_of(case, torch.func)


def branching(w):
    return w.sum() if w.sum() > 0 else -w.sin().sum()


UNDERIVED = {
    "a branch on data": lambda t: t.grad(branching)(W),
    "a change of an argument": lambda t: t.vmap(lambda x: x.mul_(2) + 1)(X.clone()),
    "a view": lambda t: t.vmap(lambda x: x)(X),
    "vjp of a branch": lambda t: (t.vjp(branching, W)[0], pulled(t, W.sum(), branching, (W,))),
    "an empty batch": lambda t: t.vmap(torch.sin)(X[:0]),
    "a module": lambda t: t.vmap(torch.nn.Softmax(0))(X),
    "a double default": lambda t: t.grad(of_tree)(TREE),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("case", UNDERIVED.values(), ids=UNDERIVED)
def test_what_cannot_be_derived_runs_as_torch_runs_it(case):
    torch.testing.assert_close(case(func), case(torch.func))


@pytest.mark.falls_back
def test_falling_back_is_told(told):
    def torn(w):
        return w.sum() if w.sum() > 0 else -w.sum()

    assert torch.equal(func.grad(torn)(W), torch.func.grad(torn)(W))
    assert func.grad(torn).last_rung == "composed"
    assert len(told()) == 1
    assert "grad_torn falls back to your function" in told()[0]


PLACES = {
    "before all": lambda t, w: t.vmap(lambda x: w * 2, out_dims=-1)(X),
    "beyond all": lambda t, w: t.vmap(lambda x: w * 2, out_dims=3)(X),
    "of a number": lambda t, w: t.vmap(lambda x: w.sum(), out_dims=-2)(X),
    "of one of two": lambda t, w: t.vmap(lambda x: (x, {"w": w * 2}), out_dims=(0, -1))(X),
    "of a tangent": lambda t, w: t.vmap(lambda x: torch.func.jvp(lambda w: w * 2, (w,), (w,)), out_dims=-1)(X),
    "in a tuple": lambda t, w: t.vmap(lambda x: w * 2, out_dims=(-2,))(X),
    "inside": lambda t, w: t.vmap(lambda x: t.vmap(lambda y: x * 2, out_dims=-1)(X))(X),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("case", PLACES.values(), ids=PLACES)
def test_a_result_without_a_batch_gets_none_where_torch_would_read_other_memory(case):
    with pytest.raises(RuntimeError, match="does not depend on the batch"):
        case(func, W.clone())


@pytest.mark.falls_back
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_an_operator_with_such_a_vmap_inside_raises_what_its_function_raises(shape, told):
    def placed(x, w):
        return torch.func.vmap(lambda x: w * 2, out_dims=-1)(x)

    served = opwright.operator(placed)
    for function in (placed, served):
        with pytest.raises(RuntimeError, match="must match the existing size"):
            function(X, torch.ones(shape))


@pytest.mark.parametrize("place", [0, 1, -1])
def test_places_of_a_batch(place):
    w = W.clone()

    def placed(t):
        return t.vmap(lambda x: {"x": x * 2, "w": w + 1}, out_dims={"x": place, "w": 0})(X)

    torch.testing.assert_close(placed(func), placed(torch.func))
