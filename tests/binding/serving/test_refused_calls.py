"""Calls that have no kernels: after the first they go to the function, past everything that looks for kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import opwright
from opwright.api.operator import Operator
from opwright.binding.serving.server import Server
from opwright.errors import FallbackRefused, OpwrightError
from opwright.settings import Settings

SCALE = 2.0


def looks(x: Tensor, k: float = 1.0, by_parts: bool = False) -> Tensor:
    """Its branch depends on values, unless it is told to go by parts."""
    if by_parts:
        return x * k
    return x.t() * SCALE if x.sum() > 0 else x * k


def looks_inside(xs: list[Tensor], k: float = 1.0) -> Tensor:
    return xs[0].t() * k if xs[0].sum() > 0 else xs[1]


def scales(x: Tensor) -> Tensor:
    return x * SCALE


def gives_up(x: Tensor) -> Tensor:
    if x.sum() > 100:
        raise NotImplementedError("too much")
    return x * 2 if x.sum() > 0 else x


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that look for kernels."""
    calls: list[Any] = []
    serve = Server._serve_slowly

    def noted(self: Server, args: Any, **options: Any) -> Any:
        calls.append(args)
        return serve(self, args, **options)

    monkeypatch.setattr(Server, "_serve_slowly", noted)
    return calls


@pytest.mark.falls_back
def test_a_refused_call_goes_to_the_function(slow: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    operator, x = Operator(looks, name="refused_looks"), torch.ones(3, 4)
    first = operator(x)
    operator(x)
    slow.clear()
    again = operator(x)
    assert not slow
    assert (again.stride(), operator.last_rung) == (first.stride(), "composed")
    torch.testing.assert_close(again, x.t() * 2)
    torch.testing.assert_close(operator(-x), -x)  # other values are of the same kind
    torch.testing.assert_close(operator(x=-x, k=1.0), -x)
    assert not slow
    monkeypatch.setattr(f"{__name__}.SCALE", 5.0)  # another state looks for kernels again
    torch.testing.assert_close(operator(x), x.t() * 5)
    assert slow


@pytest.mark.falls_back
def test_what_is_not_refused_has_kernels_and_gradients(slow: list[Any]) -> None:
    operator, x = Operator(looks, name="refused_some"), torch.ones(3, 4, requires_grad=True)
    for _ in range(3):
        result = operator(x)
    torch.testing.assert_close(torch.autograd.grad(result.sum(), x)[0], torch.full((3, 4), 2.0))
    assert operator.last_rung == "composed"
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(operator(x, 3.0, True), x * 3)
    assert operator.last_rung == "cpp"
    torch.testing.assert_close(torch.vmap(lambda y: operator(y, 3.0, True))(x.detach()), x.detach() * 3)


@pytest.mark.falls_back
def test_calls_of_structures_go_to_the_function(slow: list[Any]) -> None:
    operator, x, y = opwright.operator(looks_inside), torch.ones(3, 4), torch.zeros(3, 4)
    first = operator([x, y])
    operator([x, y])
    slow.clear()
    again = operator([x, y])
    assert not slow
    assert again.stride() == first.stride()
    torch.testing.assert_close(operator([-x, y]), y)
    torch.testing.assert_close(operator([x, y], k=3.0), x.t() * 3)  # another constant is looked at once
    assert len(slow) == 1


@pytest.mark.falls_back
def test_too_many_values_of_what_is_read_outside(slow: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    operator, x = Operator(scales, name="refused_scales"), torch.ones(3)
    for scale in range(12):
        monkeypatch.setattr(f"{__name__}.SCALE", float(scale))
        torch.testing.assert_close(operator(x), x * scale)
    slow.clear()
    torch.testing.assert_close(operator(x), x * 11)
    assert not slow
    monkeypatch.setattr(f"{__name__}.SCALE", 2.0)  # one that has kernels
    torch.testing.assert_close(operator(x), x * 2)
    assert operator.last_rung == "cpp"


@pytest.mark.falls_back
def test_errors_of_the_function_are_raised_once() -> None:
    operator = Operator(gives_up, name="refused_gives_up")
    for _ in range(3):
        operator(torch.ones(3))
    with pytest.raises(NotImplementedError, match="too much") as raised:
        operator(torch.full((3,), 99.0))
    assert raised.value.__context__ is None


@pytest.mark.falls_back
def test_pinned_calls_raise_each_time() -> None:
    operator = Operator(looks, name="refused_pinned")
    for _ in range(3):
        operator(torch.ones(3, 4))
        with pytest.raises(OpwrightError):
            operator.on("cpp")(torch.ones(3, 4))


def test_strict_settings_raise_each_time() -> None:
    operator = Operator(looks, name="refused_strictly", settings=replace(Settings.from_environment(), strict=True))
    for _ in range(3):
        with pytest.raises(FallbackRefused):
            operator(torch.ones(3, 4))
