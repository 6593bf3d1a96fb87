"""Like: handlers serve all spellings of their function, and what they do not serve is refused or run densely."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy
import pytest
import torch

import opwright
from opwright.errors import HandlerRefused
from opwright.tensors import Like


class Identity(Like):
    """value·I, with handlers for a few functions and no fallback."""

    def __init__(self, n, value):
        self.n, self.value = n, value

    def densify(self):
        return self.value * torch.eye(self.n, dtype=torch.float64)


class Dense(Identity):
    """The same, with a fallback."""


Dense.fallback("densify")


def dense(value):
    return value.densify() if isinstance(value, Like) else value


@Identity.implements(torch.add)
def add(input, other, *, alpha=1):
    return torch.add(dense(input), dense(other), alpha=alpha)


@Identity.implements(torch.sub)
def sub(input, other, *, alpha=1):
    if isinstance(input, Identity) and isinstance(other, Identity):
        return type(input)(input.n, input.value - alpha * other.value)
    return torch.sub(dense(input), dense(other), alpha=alpha)


@Identity.implements(torch.sum)
def total(input, dim=None, keepdim=False, *, dtype=None):
    return torch.sum(dense(input), dim, keepdim, dtype=dtype)


@Identity.implements(torch.softmax)
def softmax(input, dim, dtype=None):
    return torch.softmax(dense(input), dim, dtype)


@Identity.implements(torch.permute)
def permute(input, dims):
    return torch.permute(dense(input), dims)


@Identity.implements(torch.max, partial=True)
def largest(input, dim, keepdim=False):
    return torch.max(dense(input), dim, keepdim)


X = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
SPELLED = {
    "torch.sub": lambda d: torch.sub(d, X),
    "keyword": lambda d: torch.sub(input=d, other=X, alpha=2),
    "other order": lambda d: torch.sub(other=d, input=X, alpha=2),
    "alias": lambda d: torch.subtract(X, d),
    "swapped": lambda d: torch.rsub(X, d, alpha=3),
    "swapped, other side": lambda d: torch.rsub(d, X),
    "operator": lambda d: d - X,
    "reflected": lambda d: X - d,
    "reflected number": lambda d: 1 - d,
    "number": lambda d: d - 1,
    "method": lambda d: X.sub(d, alpha=2),
    "in place": lambda d: X.clone().sub_(d, alpha=2),
    "out": lambda d: torch.sub(X, d, out=torch.empty(3, 3, dtype=torch.float64)),
    "names of NumPy": lambda d: torch.sum(d, axis=0, keepdims=True),
    "sum of a dimension": lambda d: torch.sum(d, 1),
    "softmax": lambda d: torch.softmax(d, -1),
    "softmax of nn": lambda d: torch.nn.functional.softmax(d, -1, dtype=torch.float32),
    "softmax of special": lambda d: torch.special.softmax(d, -1),
    "permute": lambda d: d.permute(1, 0),
    "permute, a list": lambda d: torch.permute(d, (1, 0)),
    "max": lambda d: torch.max(d, 0)[0],
    "max by name": lambda d: torch.max(d, dim=1, keepdim=True)[1],
}


@pytest.mark.parametrize("call", SPELLED.values(), ids=SPELLED)
def test_a_handler_serves_all_spellings(call):
    d = Identity(3, 2.0)
    torch.testing.assert_close(call(d), call(d.densify()))


def test_operators_in_place():
    d = kept = Identity(3, 2.0)
    d -= Identity(3, 0.5)
    assert d is kept
    assert d.value == 1.5
    x = kept_x = X.clone()
    x -= d
    assert x is kept_x
    torch.testing.assert_close(x, X - d.densify())
    with pytest.raises(TypeError, match=r"torch\.Tensor\.sub_ would make a Tensor of a Identity"):
        d -= X
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(3, 3, dtype=torch.int64).sub_(d)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(1, 3, dtype=torch.float64).sub_(d)


class Held(Like):
    """A tensor, held."""

    def __init__(self, value):
        self.value = value

    def densify(self):
        return self.value


def held(value):
    return value.value if isinstance(value, Held) else value


for function in (torch.add, torch.sub, torch.mul, torch.div, torch.lt, torch.unsqueeze, torch.t, torch.remainder):

    @Held.implements(function)
    def handler(*args, function=function, **kwargs):
        return Held(function(*map(held, args), **{name: held(value) for name, value in kwargs.items()}))


class Numbered(Held):
    """The same, with a fallback."""


Numbered.fallback("densify")
for function in (torch.add, torch.sub, torch.mul, torch.div, torch.remainder, torch.pow, torch.floor_divide, torch.lt):

    @Numbered.implements(function)
    def numbered(*args, function=function, **kwargs):
        return Numbered(function(*map(held, args), **kwargs))


for function in (torch.le, torch.gt, torch.ge, torch.eq, torch.ne):

    @Numbered.implements(function)
    def compared(*args, function=function, **kwargs):
        return Numbered(function(*map(held, args), **kwargs))


OTHERS = {
    "a number": 2,
    "a complex number": 1j,
    "a tensor": torch.tensor([1.0, 2.0, 3.0]),
    "float64": torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64),
    "complex": torch.tensor([1j, 2.0, 3.0]),
    "integers": torch.tensor([1, 2, 3]),
    "more dimensions": torch.ones(2, 3),
    "one": torch.ones(1),
}
STARTS = [torch.float32, torch.float64, torch.bool, torch.complex64, torch.int64]
IN_PLACE = {
    "+=": lambda x, other: x.__iadd__(other),
    "-=": lambda x, other: x.__isub__(other),
    "*=": lambda x, other: x.__imul__(other),
    "/=": lambda x, other: x.__itruediv__(other),
    "%=": lambda x, other: x.__imod__(other),
    "add_": lambda x, other: x.add_(other, alpha=2),
    "lt_": lambda x, other: x.lt_(other),
    "unsqueeze_": lambda x, other: x.unsqueeze_(0),
    "t_": lambda x, other: x.t_(),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_an_object_keeps_its_shape_and_dtype_in_place_as_a_tensor_does(name, other):
    for dtype in STARTS:
        results = []
        for make in (lambda x: x, Held):
            start = make(torch.tensor([3, 1, 0]).to(dtype))
            try:
                IN_PLACE[name](start, OTHERS[other])
                results.append(held(start))
            except RuntimeError:
                results.append(torch.tensor([]))
        torch.testing.assert_close(*results)


NUMBERS = [numpy.float64(2), numpy.float32(2), numpy.int64(2), numpy.int32(3), numpy.bool_(True), numpy.float16(0.5)]
ARRAYS = [numpy.array(2.0), numpy.array([1.0, 2.0], dtype=numpy.float32), numpy.array([1, 2])]
BETWEEN = ["add", "sub", "mul", "truediv", "mod", "pow", "floordiv", "matmul", "lt", "le", "gt", "ge", "eq", "ne"]


def results(calls):
    for call in calls:
        try:
            yield call()
        except (TypeError, ValueError):
            yield "refused"


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")  # of torch's own
@pytest.mark.parametrize("other", [*NUMBERS, *ARRAYS], ids=repr)
@pytest.mark.parametrize("name", BETWEEN)
def test_numbers_and_arrays_of_numpy_on_either_side(name, other):
    operate, x = getattr(operator, name), torch.tensor([3.0, 1.5])
    d = Numbered(x)
    for tensors, objects in (((other, x), (other, d)), ((x, other), (d, other))):
        expected, found = results([lambda: operate(*tensors), lambda: operate(*objects)])  # noqa: B023 - called at once
        if isinstance(other, numpy.generic) and isinstance(expected, torch.Tensor):
            assert type(found) is Numbered
        assert type(held(found)) is type(expected)
        if isinstance(expected, torch.Tensor):
            torch.testing.assert_close(held(found), expected)


def test_the_words_for_what_does_not_fit_in_place_are_torchs():
    for other in (torch.ones(2, 3), 1j):
        said = []
        for start in (torch.zeros(3), Held(torch.zeros(3))):
            with pytest.raises(RuntimeError) as refusal:
                start += other
            said.append(str(refusal.value))
        assert said[0] == said[1]


def test_a_type_that_converts_itself_is_asked_to():
    class Converted(Held):
        pass

    @Converted.implements(torch.Tensor.to)
    def to(self, *args, **kwargs):
        return Converted(self.value.to(*args, **kwargs))

    @Converted.implements(torch.add)
    def add(input, other, *, alpha=1):
        return Converted(torch.add(held(input), held(other), alpha=alpha))

    x = Converted(torch.zeros(3, dtype=torch.int32))
    x += torch.ones(3, dtype=torch.int64)
    assert x.dtype == torch.int32
    y = Held(torch.zeros(3, dtype=torch.int32))
    with pytest.raises(TypeError, match=r"would make a torch.int32 Held torch.int64, in place"):
        y += torch.ones(3, dtype=torch.int64)


REFUSED = {
    "torch.exp": lambda d: torch.exp(d),
    "torch.Tensor.exp": lambda d: d.exp(),
    "torch.Tensor.__rmul__": lambda d: X * d,
    "torch.max": lambda d: torch.max(d),
    "torch.nn.functional.relu": lambda d: torch.nn.functional.relu(d),
    "torch.Tensor.__bool__": bool,
    "torch.stack": lambda d: torch.stack([X, d]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuse_names_the_function_and_the_type(name):
    with pytest.raises(TypeError, match=rf"{name} is not handled by Identity"):
        REFUSED[name](Identity(3, 2.0))


DENSELY = {
    **{name: REFUSED[name] for name in REFUSED if name != "torch.Tensor.__bool__"},
    "attribute": lambda d: d.T,
    "item": lambda d: d[0, 1:],
    "iteration": lambda d: list(d)[1],
    "list": lambda d: torch.cat([d, X], 1),
    "function in Python": lambda d: torch.einsum("ij,jk->ik", d, X),
    "matmul": lambda d: X @ d,
    "reflected power": lambda d: 2**d,
    "numpy": lambda d: torch.from_numpy(__import__("numpy").asarray(d)),
    "module": lambda d: torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Softmax(-1))(d),
    "functional_call": lambda d: torch.func.functional_call(
        torch.nn.Linear(3, 2, bias=False), {"weight": torch.ones(2, 3, dtype=torch.float64)}, d
    ),
}


@pytest.mark.parametrize("call", DENSELY.values(), ids=DENSELY)
def test_densify_runs_the_rest(call):
    d = Dense(3, 2.0)
    torch.testing.assert_close(call(d), call(d.densify()))


LOST = {
    "in place": lambda d: d.mul_(2),
    "operator": lambda d: d.__imul__(2),
    "item": lambda d: d.__setitem__(0, 1.0),
    "out": lambda d: torch.exp(X, out=d),
    "flag": lambda d: torch.nn.functional.relu(d, inplace=True),
    "hook": lambda d: d.register_hook(print),
    "function": lambda d: torch.relu_(d),
    "function, by name": lambda d: torch.relu_(input=d),
    "indices": lambda d: torch.index_put_(d, (torch.tensor([0]),), torch.tensor(9.0)),
    "initializer": lambda d: torch.nn.init.constant_(d, 3.0),
    "random initializer": lambda d: torch.nn.init.kaiming_uniform_(d),
    "of a list": lambda d: torch._foreach_add_([d], 1.0),
    "largest norm": lambda d: torch.nn.functional.embedding(torch.tensor([1]), d, max_norm=0.5),
    "function, in inference": torch.inference_mode()(lambda d: torch.relu_(d)),
}


@pytest.mark.parametrize("call", LOST.values(), ids=LOST)
def test_what_would_only_reach_a_dense_copy_is_refused(call):
    with pytest.raises(TypeError, match=r"dense copy|must be Tensor"):
        call(Dense(3, 2.0))


def test_shape_questions():
    class Huge(Identity):
        pass

    huge = Huge(10**7, 1.0)  # whose matrix no machine holds
    assert huge.shape == (10**7, 10**7)
    assert (huge.ndim, huge.dim(), huge.size(0), huge.numel()) == (2, 2, 10**7, 10**14)
    assert huge.dtype == torch.float64
    assert Identity(3, 1.0).device == torch.device("cpu")


def test_an_attribute_may_have_a_handler():
    class Told(Identity):
        pass

    @Told.implements(torch.Tensor.is_cuda.__get__)
    def is_cuda(self):
        return True

    assert Told(2, 1.0).is_cuda
    assert not hasattr(Identity(2, 1.0), "is_cuda")
    assert not hasattr(Identity(2, 1.0), "nonsense")


def test_repr_never_recurses():
    class Held(Identity):
        pass

    d = Held(2, 1.0)
    assert repr(d) == "Held(n=2, value=1.0)"
    d.self = d
    assert repr(d) == "Held(n=2, value=1.0, self=...)"


def test_copies_and_pickles():
    d = Identity(3, 2.0)
    for other in (copy.copy(d), copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        assert vars(other) == vars(d)
        assert other is not d


def test_subclasses_inherit_and_override():
    class Doubled(Identity):
        pass

    d = Doubled(3, 2.0)
    before = torch.add(d, X)

    @Doubled.implements(torch.add)
    def other_add(input, other, *, alpha=1):
        return "doubled"

    assert torch.equal(before, X + Identity(3, 2.0).densify())
    assert torch.add(d, X) == d + X == X + d == "doubled"
    assert isinstance(Identity(3, 2.0) + X, torch.Tensor)
    assert torch.add(Identity(3, 2.0), d) == "doubled"
    assert isinstance(torch.sub(Identity(3, 2.0), d), Identity)


def test_a_handler_of_a_form_serves_that_form_alone():
    class Own(Identity):
        pass

    @Own.implements(torch.Tensor.__radd__)
    def from_the_right(self, other, *, alpha=1):
        return "reflected"

    d = Own(3, 2.0)
    assert 1 + d == "reflected"
    assert isinstance(d + 1, torch.Tensor)


@pytest.mark.parametrize(
    ("function", "handler", "said"),
    [
        (torch.add, lambda input, other: input, "does not take alpha, which torch.add takes"),
        (torch.mean, lambda input, dim=None: input, "does not take dtype, keepdim"),
        (torch.add, lambda input, other, scale, *, alpha=1: input, "needs scale, which torch.add does not have"),
        (torch.add, lambda input, other, *, alpha=2: input, "has alpha=2, where torch.add has alpha=1"),
        (torch.mean, lambda input, dim=None, keepdim=True, *, dtype=None: input, "has keepdim=True"),
        (torch.nn.functional.softmax, lambda input, dtype=None: input, "does not take dim"),
        (torch.max, lambda input, dim, keepdim=False: input, "does not take other"),
        (torch.ones, lambda *size: size, "not a function of PyTorch that types can override"),
    ],
)
def test_a_handler_that_does_not_fit_is_refused(function, handler, said):
    class Refusing(Identity):
        pass

    with pytest.raises(HandlerRefused, match=said) as refusal:
        Refusing.implements(function)(handler)
    assert refusal.value.hint


def test_calls_of_one_function_in_different_forms_are_bound_each_by_its_own():
    class Recorded(Identity):
        pass

    @Recorded.implements(torch.max)
    def largest(input, *args, **kwargs):
        return args, kwargs

    @Recorded.implements(torch.permute)
    def permute(input, dims):
        return dims

    @Recorded.implements(torch.softmax)
    def softmax(input, dim, dtype=None):
        return dim, dtype

    d = Recorded(3, 2.0)
    for _ in range(2):  # the second time by what was found the first
        assert torch.max(d, 1) == ((1,), {})
        assert torch.max(d, dim=1, keepdim=True) == ((1, True), {})
        assert torch.max(d, X) == ((X,), {})
        assert torch.max(d) == ((), {})
        assert d.permute(1, 0) == d.permute((1, 0)) == torch.permute(d, (1, 0)) == (1, 0)
        assert torch.nn.functional.softmax(d, 0) == torch.softmax(d, 0) == d.softmax(axis=0) == (0, None)
        assert torch.nn.functional.softmax(d, dim=1, dtype=torch.float64) == (1, torch.float64)


def test_a_method_found_by_its_name_is_each_object_s_own():
    class Other(Identity):
        trace = "an attribute of the class"

    one, two = Identity(2, 3.0), Identity(4, 5.0)
    assert (float(one.sum()), float(two.sum())) == (6.0, 20.0)
    assert Other(2, 3.0).trace == "an attribute of the class"
    with pytest.raises(TypeError, match=r"torch\.Tensor\.cosh is not handled by Identity"):
        one.cosh()
    assert float(two.sum(dim=None)) == 20.0


def test_a_partial_handler_leaves_the_rest_to_the_fallback():
    class Partial(Dense):
        pass

    @Partial.implements(torch.add, partial=True)
    def add(input, other):
        return "handler"

    d = Partial(3, 2.0)
    assert torch.add(d, X) == torch.add(d, X, alpha=1) == "handler"
    torch.testing.assert_close(torch.add(d, X, alpha=2), torch.add(d.densify(), X, alpha=2))


def test_other_refusals():
    with pytest.raises(HandlerRefused, match="'dense' is no fallback"):
        Dense.fallback("dense")

    class Empty(Like):
        pass

    Empty.fallback("densify")
    with pytest.raises(HandlerRefused, match="Empty has no densify"):
        torch.exp(Empty())
    with pytest.raises(HandlerRefused, match="make a subclass"):
        Like.implements(torch.add)
    with pytest.raises(HandlerRefused, match="is not a function of PyTorch"):
        Empty.implements(lambda input: input)  # without the call, `implements` is given the handler
    with pytest.raises(HandlerRefused, match="for no function"):
        Empty.implements()
    with pytest.raises(HandlerRefused, match="is no function: 3"):
        Empty.implements(torch.abs)(3)
    for accepts in (int, ("int",)):
        with pytest.raises(HandlerRefused, match="a tuple of types"):
            type("Other", (Like,), {}, accepts=accepts)


@opwright.operator
def like_product(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return input * other * 1


def test_a_handler_may_be_an_operator():
    class Served(Identity):
        pass

    Served.implements(torch.mul)(like_product)
    torch.testing.assert_close(Served(3, 2.0) * X, Served(3, 2.0).densify() * X)
    torch.testing.assert_close(X * Served(3, 2.0), Served(3, 2.0).densify() * X)
    assert like_product.last_rung != "composed"


def test_gradients_reach_the_fields():
    class Scaled(Dense):
        pass

    value = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    torch.nn.functional.linear(X, Scaled(3, value)).square().sum().backward()
    assert value.grad is not None
    torch.testing.assert_close(value.grad, 2 * 2.0 * X.square().sum())


def test_a_function_is_looked_up_once():
    class Counted(Identity):
        pass

    d = Counted(3, 2.0)
    assert torch.add(d, X) is not None
    entry = Counted._entries[torch.add]
    assert torch.add(d, X) is not None
    assert Counted._entries[torch.add] is entry
    Identity.implements(torch.add)(add)
    assert Counted._entries == {}


def test_compile_goes_through_handlers_whole():
    def function(d, x):
        return torch.add(d, x) * torch.sub(x, d, alpha=2)

    d = Identity(3, 2.0)
    right = function(d, X)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function, backend="eager", fullgraph=True)(d, X), right)


def test_compile_breaks_with_a_word_where_it_must():
    def function(d, x):
        return torch.sum(d, axis=0) + x

    d = Identity(3, 2.0)
    right = function(d, X)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function, backend="eager")(d, X), right)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"arguments of torch\.sum are bound"):
        torch.compile(function, backend="eager", fullgraph=True)(d, X)
