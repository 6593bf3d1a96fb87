"""Operators compute what their functions would compute now, whatever these read outside, however they are called."""

import contextvars
import threading
import types
import warnings

import pytest
import torch
from torch import Tensor

import opwright
from opwright.binding.variants.states import MOST_STATES, OutsideChanged
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.built_together,
    pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning"),  # torch.func.jvp's own
]
X = torch.linspace(-2, 2, 12).reshape(3, 4)
OUTSIDE = types.SimpleNamespace(scale=2.0)
TABLE = list(range(1000))
LEVEL = contextvars.ContextVar("LEVEL", default=1.0)


@pytest.fixture(autouse=True)
def as_at_first():
    yield
    OUTSIDE.scale = 2.0


@opwright.operator(name="scaled_by_outside")
def scaled(x: Tensor) -> Tensor:
    return torch.sin(x) * OUTSIDE.scale


@opwright.operator
def of_a_list(tensors: list[Tensor], shift: float = 0.0) -> dict[str, Tensor]:
    return {"sum": tensors[0] * OUTSIDE.scale + tensors[1] + shift}


@opwright.operator(mutates=("x",))
def scaled_in_place(x: Tensor) -> None:
    x.mul_(OUTSIDE.scale)


@opwright.operator
def of_another(x: Tensor) -> Tensor:
    return scaled(x) + 1


@opwright.operator
def of_the_context(x: Tensor) -> Tensor:
    return x * LEVEL.get()


@opwright.operator
def of_the_mode(x: Tensor) -> Tensor:
    return x * (2.0 if torch.is_grad_enabled() else 3.0)


class Layer(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * OUTSIDE.scale


LAYER = opwright.module(Layer())
CALLS = {
    "call": (scaled, lambda f: f(X)),
    "keyword": (scaled, lambda f: f(x=X)),
    "gradient": (scaled, lambda f: torch.autograd.grad(f(x := X.clone().requires_grad_()).sum(), x)[0]),
    "second derivative": (
        scaled,
        lambda f: torch.autograd.grad(
            torch.autograd.grad(f(x := X.clone().requires_grad_()).sum(), x, create_graph=True)[0].sum(), x
        )[0],
    ),
    "grad": (scaled, lambda f: torch.func.grad(lambda x: f(x).sum())(X)),
    "jvp": (scaled, lambda f: torch.func.jvp(f, (X,), (X + 1,))),
    "vmap": (scaled, lambda f: torch.vmap(f)(X)),
    "hessian": (scaled, lambda f: torch.func.hessian(lambda x: f(x).sum())(X[0])),
    "structure": (of_a_list, lambda f: f([X, X], 0.5)),
    "in place": (scaled_in_place, lambda f: (f(x := X.clone()), x)[1]),
    "operator in an operator": (of_another, lambda f: f(X)),
    "dispatcher": (scaled, lambda f: getattr(f, "overload", f)(X)),
    "function rung": (scaled, lambda f: f.on("function")(X) if hasattr(f, "on") else f(X)),
}


@pytest.mark.parametrize("way", mostly_at_night(CALLS, by_day=CALLS.keys() - {"hessian", "keyword"}))
def test_every_way_of_calling_sees_another_value(way):
    operator, call = CALLS[way]
    for OUTSIDE.scale in (2.0, 5.0, 2.0, -0.0):
        torch.testing.assert_close(call(operator), call(operator.reference))


def test_a_module_sees_another_value():
    for OUTSIDE.scale in (2.0, 5.0, 2.0):
        torch.testing.assert_close(LAYER(X), torch.relu(X) * OUTSIDE.scale)
        assert LAYER.last_rung == "cpp"


def test_a_known_value_derives_nothing_again():
    for OUTSIDE.scale in (2.0, 7.0):
        scaled(X)
    before = scaled._variants.count()
    for OUTSIDE.scale in (7.0, 2.0, 7.0):
        scaled(X)
        assert scaled.last_rung == "cpp"
    assert scaled._variants.count() == before


def test_a_first_derivative_is_that_of_the_call():
    x = X.clone().requires_grad_()
    y = scaled(x)
    OUTSIDE.scale = 11.0
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], 2.0 * torch.cos(X))


def test_a_derivative_whose_value_is_gone_says_so():
    x = X.clone().requires_grad_()
    y = scaled(x)
    OUTSIDE.scale = 11.0
    with pytest.raises(OutsideChanged, match=r"scale.* has changed") as raised:
        torch.autograd.grad(y.sum(), x, create_graph=True)
    assert raised.value.place.file == __file__

    OUTSIDE.scale = 2.0
    _, pull = torch.func.vjp(scaled, X)
    OUTSIDE.scale = 11.0
    with pytest.raises(OutsideChanged):
        pull(X)


def test_threads_have_contexts_and_modes_of_their_own():
    wrong = []

    def calls(level, recording):
        LEVEL.set(level)
        with torch.set_grad_enabled(recording):
            for _ in range(30):
                if not torch.equal(of_the_context(X), X * level):
                    wrong.append(("context", level))
                if not torch.equal(of_the_mode(X), X * (2.0 if recording else 3.0)):
                    wrong.append(("mode", recording))

    threads = [threading.Thread(target=calls, args=(float(k + 2), bool(k % 2))) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.falls_back
def test_too_many_values_are_told_once_and_are_right():
    holder = types.SimpleNamespace(k=0)

    @opwright.operator
    def counted(x: Tensor) -> Tensor:
        return x * holder.k

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for holder.k in range(MOST_STATES + 4):
            assert torch.equal(counted(X), X * holder.k)
    (warning,) = [w for w in said if issubclass(w.category, opwright.FallbackWarning)]
    assert "k has had 8 values" in str(warning.message)
    assert f"{__file__}:" in str(warning.message)
    assert counted.last_rung == "composed"


@pytest.mark.falls_back
def test_what_cannot_be_compared_is_told_with_its_line():
    @opwright.operator
    def looked_up_again(x: Tensor) -> Tensor:
        return x * TABLE[3]

    with pytest.warns(opwright.FallbackWarning, match=r"reads global 'TABLE', a list of 1000 members"):
        assert torch.equal(looked_up_again(X), X * 3)


def test_a_frozen_value_is_a_constant():
    @opwright.operator(freeze=("TABLE", "OUTSIDE.scale"))
    def frozen(x: Tensor) -> Tensor:
        return x * TABLE[3] * OUTSIDE.scale

    for OUTSIDE.scale in (2.0, 3.0):
        assert torch.equal(frozen(X), X * 6)
        assert frozen.last_rung == "cpp"
