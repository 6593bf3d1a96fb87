"""Function transforms and forward mode give what they give in eager, and run on kernels."""

import itertools
import threading

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck

import opwright
from opwright.errors import NoKernel, UnsupportedParameter
from tests.operator.operators import biased, linear_tanh, lltm, ranked
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node"),  # from torch.func.linearize
]


@opwright.operator
def rows(x: Tensor, weight: Tensor) -> Tensor:
    return torch.softmax(x * x, -1) * weight


@opwright.operator
def parts(tensors: list[Tensor], scale: float = 2.0) -> dict[str, Tensor]:
    return {"product": tensors[0].sin() * tensors[1], "power": tensors[1].exp() * scale}


@opwright.operator
def noisy(x: Tensor) -> Tensor:
    return torch.rand_like(x) * x * x


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CELL = (random(3, 12), random(3, 4, seed=1))


def tensors_of(result):
    return result if isinstance(result, tuple) else (result,)


def total(function):
    return lambda *args: sum(t.pow(2).sum() for t in tensors_of(function(*args)) if t.is_floating_point())


def first(function):
    return lambda *args: tensors_of(function(*args))[0]


def every(args):
    return tuple(range(len(args)))


def directions(args):
    return tuple(torch.cos(arg) for arg in args)


def stacked(args):
    return [torch.stack([arg, arg + 1, arg - 0.5]) for arg in args]


def dual(function, *args):
    with forward_ad.dual_level():
        results = function(*[forward_ad.make_dual(arg, torch.cos(arg)) for arg in args])
        pairs = [forward_ad.unpack_dual(result) for result in tensors_of(results)]
        return [tensor for pair in pairs for tensor in pair if tensor is not None]


def grad(f, *a):
    return torch.func.grad(total(f), every(a))(*a)


def grad_of_grad(f, *a):
    return torch.func.grad(lambda *b: sum(g.pow(2).sum() for g in grad(f, *b)), every(a))(*a)


def vjp(f, *a):
    result, pull = torch.func.vjp(first(f), *a)
    return pull(torch.sin(result))


def jvp(f, *a):
    return torch.func.jvp(first(f), a, directions(a))


def jvp_of_jvp(f, *a):
    return torch.func.jvp(lambda *b: torch.func.jvp(first(f), b, directions(a))[1], a, directions(a))


def jvp_of_grad(f, *a):
    return torch.func.jvp(torch.func.grad(total(f), every(a)), a, directions(a))


def grad_of_jvp(f, *a):
    return torch.func.grad(lambda *b: torch.func.jvp(first(f), b, directions(a))[1].sum(), every(a))(*a)


def linearize(f, *a):
    return torch.func.linearize(first(f), *a)[1](*directions(a))


def jacobians(f, *a):
    return torch.func.jacrev(first(f), every(a))(*a), torch.func.jacfwd(first(f), every(a))(*a)


def hessian(f, *a):
    return torch.func.hessian(total(f), every(a))(*a)


def vmap(f, *a):
    return torch.vmap(f)(*stacked(a))


def vmap_over_last_dimensions(f, *a):
    return torch.vmap(f, in_dims=-1, out_dims=-1)(*[b.movedim(0, -1) for b in stacked(a)])


def vmap_over_some(f, *a):
    return torch.vmap(f, in_dims=(0, None))(stacked(a)[0], a[1])


def vmap_of_vmap(f, *a):
    return torch.vmap(torch.vmap(f))(*[torch.stack([b, b * 2]) for b in stacked(a)])


def vmap_in_chunks(f, *a):
    return torch.vmap(f, chunk_size=2)(*stacked(a))


def vmap_of_grad(f, *a):
    return torch.vmap(torch.func.grad(total(f), every(a)))(*stacked(a))


def grad_of_vmap(f, *a):
    return torch.func.grad(lambda *b: total(torch.vmap(f))(*b), every(a))(*stacked(a))


def vmap_of_jvp(f, *a):
    return torch.vmap(lambda *b: torch.func.jvp(first(f), b, directions(b))[1])(*stacked(a))


TRANSFORMS = [
    grad, grad_of_grad, vjp, jvp, jvp_of_jvp, jvp_of_grad, grad_of_jvp, linearize, jacobians, hessian, vmap, dual,
    vmap_over_last_dimensions, vmap_over_some, vmap_of_vmap, vmap_in_chunks, vmap_of_grad, grad_of_vmap, vmap_of_jvp,
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "args", "transforms"),
    [
        (lltm, CELL, [grad, vmap_over_last_dimensions]),
        (rows, (random(3, 4), random(4, seed=1)), [vmap_over_some, vmap_of_grad, grad_of_vmap]),
        (ranked, (random(4), random(4, seed=1)), [jvp_of_jvp, jvp_of_grad, vmap, dual]),
        *mostly_at_night(
            [
                (lltm, CELL, TRANSFORMS),
                (rows, (random(3, 4), random(4, seed=1)), [jvp_of_jvp, jvp_of_grad]),
                (linear_tanh, (random(3, 4), random(5, 4, seed=1)), [jacobians, vmap_of_grad, vmap_of_jvp]),
            ],
            by_day=0,
        ),
    ],
)
def test_transforms_give_what_they_give_in_eager_and_run_on_kernels(operator, args, transforms):
    for transform in transforms:
        torch.testing.assert_close(transform(operator, *args), transform(operator.reference, *args))
        if transform is not linearize:  # which looks at the operations with a mode
            assert operator.last_rung == "cpp", transform.__name__


@pytest.mark.falls_back
@pytest.mark.parametrize("transform", mostly_at_night([vmap_of_grad, dual, grad_of_grad, hessian], by_day=1))
def test_the_registered_operator_is_transformed_too(transform):
    torch.testing.assert_close(transform(lltm.overload, *CELL), transform(lltm.reference, *CELL))


OF_STRUCTURES = {
    "grad": lambda f, args: torch.func.grad(lambda xs: sum(t.sum() for t in f(xs).values()))(args),
    "vmap": lambda f, args: torch.vmap(f)(args),
    "jvp": lambda f, args: torch.func.jvp(f, (args,), (args[::-1],)),
}


@pytest.mark.parametrize("transform", mostly_at_night(OF_STRUCTURES, by_day=2))
def test_structures_are_transformed(transform):
    args = [random(3, 4), random(3, 4, seed=1)]
    torch.testing.assert_close(*(OF_STRUCTURES[transform](f, args) for f in (parts, parts.reference)))
    assert parts.last_rung == "cpp"


@pytest.mark.parametrize("bias", [None, pytest.param(random(4, seed=2), marks=pytest.mark.nightly)])
def test_optional_arguments_and_numbers_are_passed_on(bias):
    x, residual = random(3, 4), random(4, seed=1)
    for transform in (
        lambda f: torch.func.grad(lambda y: f(y, bias, residual).sum())(x),
        lambda f: torch.vmap(lambda y: f(y, bias, residual=residual))(x),
        lambda f: torch.func.jacfwd(lambda y: f(y, bias))(x),
    ):
        torch.testing.assert_close(transform(biased), transform(biased.reference))


OF_RANDOM_NUMBERS = {
    "grad": lambda f, x, _: torch.func.grad(lambda y: f(y).sum())(x),
    "jvp": lambda f, x, _: torch.func.jvp(f, (x,), (torch.cos(x),)),
    "vmap": lambda f, x, randomness: torch.vmap(f, randomness=randomness)(x),
    "grad of vmap": lambda f, x, randomness: torch.func.grad(lambda y: torch.vmap(f, randomness=randomness)(y).sum())(
        x
    ),
    "vmap of grad": lambda f, x, randomness: torch.vmap(torch.func.grad(lambda y: f(y).sum()), randomness=randomness)(
        x
    ),
}


@pytest.mark.falls_back
@pytest.mark.parametrize(
    ("transform", "randomness"),
    mostly_at_night(
        itertools.product(OF_RANDOM_NUMBERS, ["different", "same"]),
        by_day=[("grad", "same"), ("jvp", "same"), ("vmap", "different"), ("vmap of grad", "same")],
    ),
)
def test_random_numbers_are_those_of_eager(transform, randomness):
    found = []
    for function in (noisy, noisy.reference):
        torch.manual_seed(0)
        found.append(OF_RANDOM_NUMBERS[transform](function, random(3, 4), randomness))
    torch.testing.assert_close(*found)


def test_random_numbers_are_refused_where_torch_refuses_them():
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(noisy)(random(3, 4))


INSIDE_OF_AUTOGRAD = {
    "vmap": lambda f, x, weight: torch.vmap(lambda row: f(row, weight))(x),
    "grad": lambda f, x, weight: torch.func.grad(lambda w: (f(x, w) * f(x * 2, weight)).sum())(weight),
    "jvp": lambda f, x, weight: torch.func.jvp(lambda y: f(y, weight), (x,), (torch.cos(x.detach()),))[1],
}


@pytest.mark.parametrize("transform", mostly_at_night(INSIDE_OF_AUTOGRAD, by_day=2))
def test_a_transform_inside_of_ordinary_autograd(transform):
    x, weight = random(3, 4).requires_grad_(), random(4, seed=1)
    results = (INSIDE_OF_AUTOGRAD[transform](f, x, weight) for f in (rows, rows.reference))
    torch.testing.assert_close(*(torch.autograd.grad(result.sin().sum(), x) for result in results))


def test_pulling_back_after_the_transform_has_ended():
    x, weight = random(3, 4), random(4, seed=1)
    pulls = [torch.func.vjp(lambda y, f=f: f(y, weight) * y, x)[1] for f in (rows, rows.reference)]
    found, expected = [torch.func.grad(lambda v, pull=pull: pull(v)[0].pow(2).sum())(x) for pull in pulls]
    torch.testing.assert_close(found, expected)


def test_gradients_are_switched_off_where_they_are_switched_off():
    x, weight = random(3, 4), random(4, seed=1)

    def scenario(f):
        return torch.func.grad(lambda y: (y * torch.no_grad()(f)(y, weight)).sum())(x)

    torch.testing.assert_close(scenario(rows), scenario(rows.reference))


IN_BATCHES = {"check_batched_grad": True, "check_batched_forward_grad": True}


@pytest.mark.parametrize("batches", mostly_at_night([{}, IN_BATCHES], by_day=1), ids=["one by one", "in batches"])
def test_forward_mode_and_batched_gradients_agree_with_differences(batches):
    args = [arg.clone().requires_grad_() for arg in (random(2, 2), random(2, seed=1))]
    assert gradcheck(rows, args, check_forward_ad=True, **batches)


@pytest.mark.nightly
def test_second_derivatives_agree_with_differences_in_every_mode():
    args = [arg.clone().requires_grad_() for arg in (random(2, 2), random(2, seed=1))]
    assert gradgradcheck(rows, args, check_fwd_over_rev=True, check_batched_grad=True)


@opwright.operator
def half_detached_from_duals(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sin(x) * y, x.detach() * 3


@pytest.mark.nightly
def test_nothing_flows_through_what_is_detached_from_dual_tensors():
    x, y = (arg.requires_grad_() for arg in (random(3, 4), random(3, 4, seed=1)))
    with forward_ad.dual_level():
        results = half_detached_from_duals(forward_ad.make_dual(x, torch.cos(x.detach())), y)
        assert [result.requires_grad for result in results] == [True, False]
    assert gradgradcheck(half_detached_from_duals, (x, y), check_fwd_over_rev=True)


def test_a_tangent_of_an_incoming_gradient_goes_through():
    x, weight = (arg.requires_grad_() for arg in (random(3, 4), random(4, seed=1)))
    found = []
    for function in (rows, rows.reference):
        result = function(x, weight)
        with forward_ad.dual_level():
            cotangents = forward_ad.make_dual(torch.cos(result.detach()), torch.sin(result.detach()))
            gradients = torch.autograd.grad(result, (x, weight), cotangents)
            found.append([forward_ad.unpack_dual(gradient).tangent for gradient in gradients])
    torch.testing.assert_close(*found)


def test_threads_differentiate_at_once():
    x, weight = random(3, 4), random(4, seed=1)
    found = [None] * 6

    def work(k):
        found[k] = torch.vmap(torch.func.grad(lambda row: rows(row, weight).pow(2).sum()))(x + k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, result in enumerate(found):
        expected = torch.vmap(torch.func.grad(lambda row: rows.reference(row, weight).pow(2).sum()))(x + k)
        torch.testing.assert_close(result, expected)


def test_transforms_are_operators():
    x, weight, cotangents = random(3, 4), random(4, seed=1), random(3, 4, seed=2)
    _, pull = torch.func.vjp(rows.reference, x, weight)
    torch.testing.assert_close(rows.vjp()(x, weight, cotangents), pull(cotangents))
    expected = torch.func.jvp(lambda y: rows.reference(y, weight), (x,), (cotangents,))
    moved, tangent = rows.jvp("x")(x, weight, cotangents)
    torch.testing.assert_close((moved, tangent), expected)
    torch.testing.assert_close(rows.vmap("x")(x, weight), torch.vmap(rows.reference, (0, None))(x, weight))
    of_each = rows.vjp("x").vmap("x", "grad_output")(x, weight, cotangents)
    torch.testing.assert_close(of_each, pull(cotangents)[:1])
    assert [r.last_rung for r in (rows.vjp(), rows.jvp("x"), rows.vmap("x"))] == ["cpp"] * 3


def test_names_of_nested_transforms_stay_short():
    nested = rows
    for _ in range(6):
        nested = nested.jvp()
        assert len(nested.name) <= 120
    assert nested.name != rows.jvp().jvp().jvp().jvp().jvp().vmap().name


def test_a_transform_of_what_is_no_tensor_is_refused():
    with pytest.raises(UnsupportedParameter, match="'y' is not a tensor parameter of rows"):
        rows.jvp("y")


@opwright.opaque(like=torch.empty_like, backward=lambda cotangents, x: cotangents * x.cos())
def numpy_sine(x: Tensor) -> Tensor:
    return torch.from_numpy(__import__("numpy").sin(x.numpy()))


@opwright.operator
def with_an_opaque_step(x: Tensor) -> Tensor:
    return numpy_sine(x * 2) + x


@pytest.mark.falls_back
@pytest.mark.parametrize("function", [with_an_opaque_step, with_an_opaque_step.reference, numpy_sine])
def test_forward_mode_through_an_opaque_step_is_refused(function):
    """PyTorch takes the tangents of a custom operator for zeros."""
    x = random(3)
    with pytest.raises(NoKernel, match="derivative of numpy_sine by forward mode"):
        torch.func.jvp(function, (x,), (x,))
    with forward_ad.dual_level(), pytest.raises(NoKernel, match="derivative of numpy_sine by forward mode"):
        function(forward_ad.make_dual(x, x))


@pytest.mark.parametrize(
    "function",
    [lambda x: x.sum() / x.numel(), lambda x: x.shape[0] - x.sum(), lambda x: x.amax() * x.shape[-1] ** 0.5],
    ids=["quotient", "difference", "root"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_size_beside_what_has_no_dimension_but_that_of_the_batch(function, dtype):
    operator = opwright.operator(function)
    for sizes in ((3, 4, 5), (2, 6, 3)):
        x = torch.randn(sizes, generator=torch.Generator().manual_seed(0)).to(dtype)
        close = {} if dtype is torch.float32 else {"rtol": 2e-2, "atol": 2e-2}  # eager rounds the sum of bfloat16
        torch.testing.assert_close(torch.vmap(operator)(x), torch.vmap(function)(x), **close)
        found, expected = [torch.func.vmap(torch.func.grad(each))(x) for each in (operator, function)]
        torch.testing.assert_close(found, expected)
