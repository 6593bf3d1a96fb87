"""Errors that are the caller's leave an operator as they are: those of the reference, hooks and signal handlers."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import opwright
from opwright.api.operator import Operator
from opwright.errors import FallbackWarning, InternalError
from opwright.settings import Settings
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.falls_back
RUNS: list[str] = []


class OwnError(Exception):
    pass


def refuses_long(x: Tensor) -> Tensor:
    RUNS.append(type(x).__name__)
    if x.shape[0] > 3:
        raise OwnError("at most three")
    return x * 2


def in_a_dict(xs: dict[str, Tensor]) -> Tensor:
    return refuses_long(xs["x"])


def changing(x: Tensor) -> Tensor:
    refuses_long(x)
    return x.mul_(2)


CALLS = {
    "plain": (refuses_long, {}, lambda f: f(torch.ones(4))),
    "a structure": (in_a_dict, {}, lambda f: f({"x": torch.ones(4)})),
    "changes": (changing, {"mutates": ("x",)}, lambda f: f(torch.ones(4))),
    "vmap": (refuses_long, {}, lambda f: torch.func.vmap(f)(torch.ones(2, 4))),
    "grad": (refuses_long, {}, lambda f: torch.func.grad(lambda x: f(x).sum())(torch.ones(4))),
    "nested": (refuses_long, {}, lambda f: torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(torch.ones(2, 4))),
}


@pytest.mark.parametrize(("reference", "options", "call"), CALLS.values(), ids=CALLS)
def test_an_error_of_the_reference_is_raised_as_it_is_and_nothing_is_told(reference, options, call, told):
    operator = Operator(reference, **options)
    for _ in range(2):
        with pytest.raises(OwnError, match=r"^at most three$"):
            call(operator)
    assert not told()


def test_the_reference_runs_once_where_it_raises():
    operator = opwright.operator(refuses_long)
    RUNS.clear()
    with pytest.raises(OwnError):
        operator(torch.ones(4))
    assert RUNS.count("Tensor") == 1


def rippled(x: Tensor) -> Tensor:
    return torch.sin(x).exp() * x


class Stop(Exception):
    pass


def test_an_error_of_a_hook_of_saved_tensors_is_raised(told):
    packed = []

    def pack(tensor: Tensor) -> Tensor:
        packed.append(tensor)
        raise Stop

    operator = opwright.operator(rippled)
    operator(torch.ones(3, requires_grad=True))
    for _ in range(2):
        with pytest.raises(Stop), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            operator(torch.ones(3, requires_grad=True))
    assert len(packed) == 2
    assert not told()


def dropping(x: Tensor) -> Tensor:
    return torch.nn.functional.dropout(torch.tanh(x), 0.5) * x


def checkpointed(x: Tensor) -> Tensor:
    return checkpoint(dropping, x, use_reentrant=False, preserve_rng_state=False).exp()


class Checkpointed(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return checkpointed(x)


@pytest.mark.parametrize("make", [lambda: opwright.operator(checkpointed), lambda: opwright.module(Checkpointed())])
def test_a_refusal_in_a_checkpoint_inside_of_a_checkpoint_is_not_raised(make, told):
    """The hooks of both have the same code."""
    served, gradients = make(), []
    for function in (served, checkpointed):
        torch.manual_seed(0)
        x = torch.linspace(-1, 1, 6).requires_grad_()
        checkpoint(function, x, use_reentrant=False, preserve_rng_state=False).sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
    assert any("a checkpoint draws its random numbers again" in text for text in told())


def test_a_timeout_by_a_signal_is_raised_wherever_it_strikes(told, monkeypatch):
    def too_late(*_: object) -> None:
        raise TimeoutError("too late")

    def busy(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, too_late)
    try:
        for step in (
            "opwright.operators.stages.trace",
            "opwright.binding.variants.building.build",
            "opwright.binding.serving.server.backend_for",
        ):
            with monkeypatch.context() as patched:
                patched.setattr(step, busy)
                with pytest.raises(TimeoutError, match="too late"):
                    Operator(rippled, identity=lambda _: None)(torch.ones(3))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not told()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass(error, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise error

    operator = Operator(rippled, identity=lambda _: None)
    with monkeypatch.context() as patched:
        patched.setattr("opwright.binding.variants.building.build", interrupted)
        with pytest.raises(error):
            operator(torch.ones(3))
    operator(torch.ones(3))
    assert operator.last_rung == "cpp"


STEPS = ("backward", "jvp", "batched")
ERRORS = (KeyError, InternalError, RecursionError)
EACH_ONCE = list(zip(STEPS, ERRORS, strict=True))


@pytest.mark.parametrize(("step", "error"), mostly_at_night([(s, e) for s in STEPS for e in ERRORS], by_day=EACH_ONCE))
def test_where_a_transform_cannot_be_made_the_reference_is_transformed(step, error, monkeypatch, told):
    def fails(*_: object, **__: object) -> None:
        raise error("injected")

    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    ways = [
        lambda f: torch.func.vmap(torch.func.grad(lambda a: f(a).sum()))(x),
        lambda f: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1],
        lambda f: torch.func.hessian(lambda a: f(a).sum())(x[0]),
        lambda f: torch.func.vmap(f, in_dims=1)(x),
        lambda f: twice(f, x),
    ]
    operator = Operator(rippled, identity=lambda _: None)
    monkeypatch.setattr(f"opwright.binding.transforms.family.Family.{step}", fails)
    for way in ways:
        torch.testing.assert_close(way(operator), way(rippled))
    assert len(set(told())) == len(told()) >= 1


def twice(function, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0]


def test_a_pinned_call_raises_what_failed(monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise InternalError("injected")

    operator = Operator(rippled, identity=lambda _: None)
    monkeypatch.setattr("opwright.binding.variants.building.build", fails)
    with pytest.raises(opwright.errors.Fault, match=r"its kernels failed with InternalError: injected"):
        operator.on("cpp")(torch.ones(3))


def test_a_kernel_that_fails_leaves_the_call_to_the_reference(monkeypatch, told):
    operator = Operator(rippled, settings=replace(Settings.from_environment(), tape="off"))
    x = torch.ones(3)
    operator(x)
    (variant,) = operator._variants.now().by_call[((), ())]

    def fails(*_: object) -> None:
        raise RuntimeError("injected")

    object.__setattr__(variant, "forward", fails)
    for _ in range(2):
        torch.testing.assert_close(operator(x), rippled(x))
        assert operator.last_rung == "composed"
    assert [text.partition(": its")[2] for text in told()] == [" kernels failed with RuntimeError: injected"]
    assert FallbackWarning is opwright.FallbackWarning


def test_an_argument_is_changed_once_whatever_fails(monkeypatch, told):
    def fails(*_: object, **__: object) -> None:
        raise InternalError("injected")

    for step in (
        "opwright.binding.variants.building.build",
        "opwright.binding.serving.server.backend_for",
        "opwright.operators.stages.lower",
    ):
        operator = Operator(changing, mutates=("x",), identity=lambda _: None)
        with monkeypatch.context() as patched:
            patched.setattr(step, fails)
            for _ in range(2):
                x = torch.ones(3)
                assert operator(x) is x
                assert x.tolist() == [2, 2, 2]
    assert len(told()) == 2  # two of the three in the same words
