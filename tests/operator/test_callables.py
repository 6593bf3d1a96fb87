"""What can be called and is no plain function: each gives an operator that does the same, or a refusal of ours."""

import dataclasses
import functools
import linecache
import operator as operators
import pickle
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

import opwright
from opwright.api.operator import Operator
from opwright.errors import CallableUnsupported
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.built_together,
    pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning"),  # torch.func.jvp's own
]


def plain(x, y):
    return torch.sin(x) * y + 1


class Stateless:
    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sin(x) * y

    def method(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cos(x) * y

    @classmethod
    def of_class(cls, x, y):
        return torch.cos(x) - y

    @staticmethod
    def static(x, y):
        return torch.cos(x) + y


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: float

    def __call__(self, x, y):
        return torch.sin(x) * y * self.scale


class Pair(NamedTuple):
    scale: float
    shift: float

    def method(self, x, y):
        return x * y * self.scale + self.shift


def twice(function):
    @functools.wraps(function)
    def called(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return called


def nested(scale):
    def inner(x, y):
        return torch.sin(x) * y * scale

    return inner


def from_text(*, readable):
    text, file, names = "def written(x, y):\n    return torch.sin(x) * y\n", f"<cell {readable}>", {"torch": torch}
    if readable:
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return names["written"]


WORK = {
    "lambda": lambda x, y: torch.sin(x) * y,
    "partial": functools.partial(lambda scale, x, y: scale * x * y, 2.0),
    "partial by keyword": functools.partial(lambda x, y, scale=1.0: scale * x * y, scale=3.0),
    "partial of a partial": functools.partial(functools.partial(lambda a, b, x, y: a * x * y + b, 2.0), 0.5),
    "bound method": Stateless().method,
    "method of a named tuple": Pair(2.0, 0.5).method,
    "callable object": Stateless(),
    "frozen dataclass": Frozen(2.0),
    "method of a class": Stateless.of_class,
    "static method": Stateless.static,
    "staticmethod object": vars(Stateless)["static"],
    "wrapped": twice(plain),
    "nested": nested(3.0),
    "of a string": from_text(readable=False),
    "of a notebook": from_text(readable=True),
    "torch function": torch.mul,
    "torch method": Tensor.mul,
    "torch dunder": Tensor.__mul__,
    "torch operation": torch.ops.aten.mul.Tensor,
    "torch operations": torch.ops.aten.mul,
    "torch.nn.functional": torch.nn.functional.mse_loss,
    "built-in function": operators.mul,
    "transformed": torch.vmap(plain),
    "operator": Operator(plain, name="made_before"),
    "any arguments": lambda *given: given[0] * given[1],
}


BY_DAY = ("partial of a partial", "callable object", "torch operation", "any arguments")


@pytest.mark.parametrize("kind", mostly_at_night(WORK, by_day=BY_DAY))
def test_what_works_does_the_same(kind):
    given = WORK[kind]
    operator = Operator(given, settings=quiet_settings(optimized=False))
    eager = given.__func__ if isinstance(given, staticmethod) else given
    x, y = torch.linspace(-1, 2, 3), torch.linspace(3, 1, 3)
    for transformed in (
        lambda f: f(x, y),
        lambda f: torch.autograd.grad((f(leaf := x.clone().requires_grad_(), y) ** 2).sum(), leaf),
        lambda f: torch.func.jvp(lambda x: f(x, y), (x,), (y,)),
        lambda f: torch.vmap(lambda x: f(x, y))(torch.stack([x, y])),
    ):
        torch.testing.assert_close(transformed(operator), transformed(eager))
        assert operator.last_rung in ("cpp", None)


@dataclasses.dataclass
class Changeable:
    scale: float

    def __call__(self, x):
        return x * self.scale

    def method(self, x):
        return x * self.scale


@pytest.mark.parametrize("make", [lambda c: c, lambda c: c.method, lambda c: functools.partial(c.method)])
def test_an_object_that_changes_is_what_it_is_now(make):
    holder, x = Changeable(2.0), torch.randn(4)
    operator = opwright.operator(make(holder), name="changeable")
    for holder.scale in (2.0, 3.0, 2.0):
        torch.testing.assert_close(operator(x), x * holder.scale)
        assert operator.last_rung == "cpp"


def generator(x):
    yield x


async def coroutine(x):
    return x


async def asynchronous_generator(x):
    yield x


LINEAR = torch.nn.Linear(3, 3)
REFUSED = {
    "module": (LINEAR, "Linear is a module", "opwright.module"),
    "method of a module": (LINEAR.forward, "forward is a method of a module", "opwright.module"),
    "partial of a module": (functools.partial(LINEAR), "Linear is a module with arguments", "opwright.module"),
    "class": (Stateless, "Stateless is a class", "returns tensors"),
    "generator": (generator, "generator is a generator", "let it return tensors"),
    "coroutine": (coroutine, "coroutine is a coroutine", "let it return tensors"),
    "asynchronous": (asynchronous_generator, "is an asynchronous generator", "let it return tensors"),
    "partial of a generator": (functools.partial(generator), "generator is a generator", "let it return tensors"),
    "classmethod object": (vars(Stateless)["of_class"], "of_class is a classmethod before", "outside of the class"),
    "property": (property(plain), "is a property before there is a class", "outside of the class"),
    "cached": (functools.lru_cache(plain), "plain remembers its results", "without the cache"),
    "number": (3, "int cannot be called", "decorate a function"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_work_is_refused_in_one_sentence(kind):
    given, fact, hint = REFUSED[kind]
    with pytest.raises(CallableUnsupported) as raised:
        opwright.operator(given)
    assert fact in raised.value.fact
    assert hint in raised.value.hint
    assert raised.value.place is not None


NAMES = {
    "lambda_function": lambda x: x,
    "plain": functools.partial(plain, 1.0),
    "mul_Tensor": torch.ops.aten.mul.Tensor,
    "_private": type(plain)(plain.__code__, {}, "_private"),
    "grou00dfe": type(plain)(plain.__code__, {}, "größe"),
    "u65e5u672c": type(plain)(plain.__code__, {}, "日本"),
    "lambda_": type(plain)(plain.__code__, {}, "lambda_"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_ones_that_the_dispatcher_takes(name):
    assert Operator(NAMES[name]).name == f"opwright::{name}"


def test_two_operators_of_one_name_are_two():
    doubled, tripled = Operator(lambda x: x * 2), Operator(lambda x: x * 3)
    for _ in range(2):
        assert doubled(torch.ones(2)).tolist() == [2, 2]
        assert tripled(torch.ones(2)).tolist() == [3, 3]


def test_partials_that_differ_in_what_they_hold_are_two():
    for scale in (2.0, 3.0, 0.0, -0.0):
        operator = Operator(functools.partial(lambda scale, x: torch.copysign(x * scale, scale * x), scale))
        expected = torch.copysign(torch.ones(2) * scale, scale * torch.ones(2))
        assert str(operator(torch.ones(2))) == str(expected)


def test_an_operator_of_a_function_at_hand_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(PICKLED)) is PICKLED


PICKLED = Operator(plain, name="pickled")
PICKLED.__qualname__ = "PICKLED"
