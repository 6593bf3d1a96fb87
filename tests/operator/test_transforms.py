"""Calls that are not plain: transforms, modes, subclasses, compilers see the operations of the reference."""

import copy
import warnings

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import opwright
from tests.operator.against_eager import random
from tests.operator.operators import cube, linear_tanh, lltm, polar, ranked, scaled_to_power, wave
from tests.suite.nights import mostly_at_night

X = random(4, gradient=False)


def dual(function):
    with forward_ad.dual_level():
        return tuple(forward_ad.unpack_dual(function(forward_ad.make_dual(X, torch.ones(4)))))


TRANSFORMS = {
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum())(X),
    "grad of grad": lambda f: torch.func.grad(lambda y: torch.func.grad(lambda x: f(x).sum())(y).sum())(X),
    "vjp": lambda f: torch.func.vjp(f, X)[1](X),
    "jvp": lambda f: torch.func.jvp(f, (X,), (torch.ones(4),)),
    "jacrev": lambda f: torch.func.jacrev(f)(X),
    "jacfwd": lambda f: torch.func.jacfwd(f)(X),
    "hessian": lambda f: torch.func.hessian(lambda x: f(x).sum())(X),
    "vmap": lambda f: torch.vmap(f)(X),
    "vmap of grad": lambda f: torch.vmap(torch.func.grad(f))(X),
    "dual": dual,
    "functionalize": lambda f: torch.func.functionalize(f)(X),
    "trace": lambda f: torch.jit.trace(lambda x: f(x), X)(X * 2),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("operator", mostly_at_night([wave, cube], by_day=1), ids=lambda operator: operator.__name__)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_transform_gives_what_it_gives_in_eager(transform, operator):
    operator(X)
    torch.testing.assert_close(TRANSFORMS[transform](operator), TRANSFORMS[transform](operator.reference))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if name != "trace"])
def test_the_registered_operator_under_a_transform(transform):
    registered = torch.ops.opwright.wave
    torch.testing.assert_close(TRANSFORMS[transform](registered), TRANSFORMS[transform](wave.reference))


def test_autocast_lowers_the_precision_of_what_it_lowers_in_eager():
    x, weight = random(3, 4, gradient=False), random(5, 4)
    linear_tanh(x, weight)
    with torch.autocast("cpu", torch.bfloat16):
        result, expected = linear_tanh(x, weight), linear_tanh.reference(x, weight)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result, expected)


class Dispatched(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("mode", "name"), [(Dispatched, "aten.sin.default"), (Functions, "sin")])
@pytest.mark.parametrize("x", [X, random(4)], ids=["plain", "with gradients"])
def test_a_mode_sees_the_operations_of_the_reference(mode, name, x):
    wave(x)
    with mode() as listening:
        result = wave(x)
    assert name in listening.seen
    torch.testing.assert_close(result, wave.reference(x))


class Logged(torch.Tensor):
    seen = ()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Logged.seen = (*Logged.seen, func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = [argument.inner if isinstance(argument, Wrapped) else argument for argument in args]
        return Wrapped(func(*inner, **(kwargs or {})))


def test_subclasses_stay_themselves():
    wave(X)
    logged = wave(X.as_subclass(Logged))
    assert type(logged) is Logged
    assert "sin" in Logged.seen
    wrapped = wave(Wrapped(X))
    torch.testing.assert_close(wrapped.inner, wave.reference(X))


def test_fake_tensors_come_out_as_they_go_in():
    with FakeTensorMode() as mode:
        hidden, cell = lltm(torch.empty(5, 12), torch.empty(5, 4))
        registered = torch.ops.opwright.small_lltm(torch.empty(5, 12), torch.empty(5, 4))
    assert hidden.fake_mode is mode
    for made in (hidden, cell, *registered):
        assert (made.shape, made.dtype) == ((5, 4), torch.float32)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", [wave, torch.ops.opwright.wave], ids=["object", "registered"])
def test_the_compiler_takes_an_operator_whole(backend, function):
    compiled = torch.compile(lambda x: function(x * 2) + 1, fullgraph=True, backend=backend)
    x = random(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own
        result = compiled(x)
    torch.testing.assert_close(result, wave.reference(x * 2) + 1)
    torch.testing.assert_close(
        torch.autograd.grad(result.sum(), x), torch.autograd.grad((wave.reference(x * 2) + 1).sum(), x)
    )


@pytest.mark.parametrize(
    ("operator", "args"),
    mostly_at_night(
        [
            (ranked, (random(3), random(3, seed=1))),
            (wave, (random(3, 4),)),
            (polar, (random(3), random(3, seed=1))),
            (lltm, (random(2, 6), random(2, 2))),
            (linear_tanh, (random(3, 4), random(5, 4))),
        ],
        by_day=1,
    ),
)
@pytest.mark.filterwarnings("ignore")
def test_torch_library_finds_nothing_wrong(operator, args):
    operator(*args)  # which registers it
    found = torch.library.opcheck(operator.overload, args)
    assert set(found.values()) == {"SUCCESS"}


def test_the_schema_is_that_of_the_annotations():
    assert str(scaled_to_power.overload._schema) == (
        "opwright::scaled_to_power(Tensor x, float scale=2., int power=2, bool negate=False) -> Tensor"
    )
    assert str(polar.overload._schema) == "opwright::polar(Tensor x, Tensor y) -> (Tensor, Tensor)"


def test_copying_an_operator_gives_the_operator():
    assert copy.copy(wave) is wave
    assert copy.deepcopy([wave])[0] is wave


@pytest.mark.falls_back
def test_layouts_that_have_no_kernel(told):
    sparse = torch.eye(3).to_sparse()
    torch.testing.assert_close(cube(sparse).to_dense(), torch.eye(3))
    assert cube(torch.empty(3, device="meta")).is_meta
    assert "cube falls back to your function: there are no kernels for torch.sparse_coo tensors on cpu" in told()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert cube(nested).is_nested


def first_of_a_name(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def second_of_a_name(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.cos() * y


def test_an_operator_whose_name_is_taken_is_no_longer_at_the_dispatcher():
    first = opwright.operator(name="opwright::taken")(first_of_a_name)
    assert first.overload is torch.ops.opwright.taken.default
    second = opwright.operator(name="opwright::taken")(second_of_a_name)
    assert first.overload is None
    torch.testing.assert_close(second.overload(X, X), X.cos() * X)
    compiled = torch.compile(lambda x: first(x) + 1, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(X), X.sin() + 1)


@pytest.mark.parametrize("inline", [False, True])
def test_the_compiler_sees_one_operation_or_those_of_the_reference(inline):
    seen = []

    def look(module, _):
        seen.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
        return module

    function = opwright.operator(name=f"opwright::seen_{inline}", inline=inline)(first_of_a_name)
    backend = aot_autograd(fw_compiler=look, bw_compiler=look)
    x = random(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own
        torch.compile(lambda x: function(x * 2), fullgraph=True, backend=backend)(x).sum().backward()
    whole = {f"opwright.seen_{inline}.default", f"opwright.seen_{inline}_backward_x.default"}
    assert (whole <= set(seen)) is not inline
    torch.testing.assert_close(x.grad, 2 * torch.cos(2 * x.detach()))


@opwright.operator
def force(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        place = x.detach().requires_grad_()
        return torch.autograd.grad((place.sin() * place).sum(), place)[0] * x


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_the_compiler_takes_a_function_whole_that_differentiates():
    x = random(4)
    result = torch.compile(lambda x: force(x) * 3, fullgraph=True, backend="aot_eager")(x)
    expected = force.reference(x) * 3
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(*(torch.autograd.grad(each.sum(), x) for each in (result, expected)))


@pytest.mark.filterwarnings("ignore")  # the exporter's own
def test_an_exported_program_holds_the_operator_and_can_be_taken_apart():
    class Module(torch.nn.Module):
        def forward(self, gates, cell):
            return lltm(gates, cell)

    args = random(5, 12, gradient=False), random(5, 4, gradient=False)
    exported = torch.export.export(Module(), args)
    assert "opwright.small_lltm.default" in exported.graph_module.code.replace("torch.ops.", "")
    torch.testing.assert_close(exported.module()(*args), lltm.reference(*args))
    apart = exported.run_decompositions({lltm.overload: lltm.reference})
    assert "small_lltm" not in apart.graph_module.code
    torch.testing.assert_close(apart.module()(*args), lltm.reference(*args))


def test_tensors_without_data_get_the_strides_that_kernels_give():
    x = random(3, 2, gradient=False).t()
    assert wave(x).stride() == wave(x.to("meta")).stride() == torch.ops.opwright.wave(x.to("meta")).stride() == (1, 2)
    with FakeTensorMode() as mode:
        assert wave(mode.from_tensor(x)).stride() == (1, 2)


@opwright.operator
def sum_of_positive(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x[x > 0]).sum()


@pytest.mark.falls_back
def test_sizes_that_depend_on_data_on_the_way_stay_inside():
    x = random(3, 4, gradient=False)
    compiled = torch.compile(sum_of_positive, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), sum_of_positive.reference(x))


@opwright.operator
def untraceable(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.is_meta or x.sum() > -1000 else x


@pytest.mark.falls_back
def test_what_has_no_kernel_lies_as_the_function_lays_it_out():
    x = random(3, 2, gradient=False).t().requires_grad_()
    assert untraceable(x).stride() == untraceable(x.detach().to("meta")).stride() == (1, 2)
    assert untraceable.last_rung == "composed"
