"""What one process derived of a definition, another one loads; and it derives again what may have changed."""

from __future__ import annotations

from typing import Any

import pytest

import opwright
from opwright.binding.variants import states
from opwright.errors import FallbackRefused, NoKernel
from opwright.optim.base import DerivedOptimizer
from opwright.optim.classes import optimizer_class
from opwright.optim.serving import variants as serving
from opwright.optim.serving.variants import Variants
from tests.optim.trained import assert_same, parameters, train
from tests.suite.warm_python import run

SHAPES = ((7, 5), (3,))
state = {"rate": 1.0}


@opwright.optimizer(state=("buffer",))
def Recorded(param: Any, grad: Any, buffer: Any, step: Any, *, lr: float = 0.1, betas: Any = (0.9, 0.5)) -> Any:
    buffer = betas[0] * buffer + grad if step < 3 else betas[1] * buffer + grad
    return param - lr * buffer, buffer


@opwright.optimizer(state=("norm",))
def OfTensors(param: Any, grad: Any, norm: Any, step: Any, *, lr: float = 0.1) -> Any:
    return param - lr * grad / grad.square().sum().sqrt(), norm + 1


def reading_a_number(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    return (param - lr * state["rate"] * grad,)


def in_another_process(cls: type[DerivedOptimizer]) -> type[DerivedOptimizer]:
    """The same definition, of which this process knows nothing."""
    return optimizer_class(DerivedOptimizer, cls.definition, Variants(cls.definition))


@pytest.fixture
def underivable(monkeypatch: pytest.MonkeyPatch) -> Any:
    def refuse() -> None:
        def derive(*_: Any, **__: Any) -> None:
            raise NoKernel("nothing may be derived")

        monkeypatch.setattr(serving, "derive", derive)

    return refuse


@pytest.mark.parametrize("cls", [Recorded, OfTensors])
def test_nothing_is_derived_again(cls: type[DerivedOptimizer], underivable: Any) -> None:
    first = in_another_process(cls)
    right = train(first(parameters(SHAPES)), 5)
    underivable()
    second = in_another_process(cls)
    assert_same(train(second(parameters(SHAPES)), 5), right)
    assert second.variants.built == first.variants.built


def test_what_is_read_outside_is_part_of_a_record(monkeypatch: pytest.MonkeyPatch, underivable: Any) -> None:
    cls = opwright.optimizer()(reading_a_number)
    train(cls(parameters(SHAPES)), 2)
    monkeypatch.setitem(state, "rate", 0.5)
    halved = train(in_another_process(cls)(parameters(SHAPES)), 2)
    assert_same(halved, train(opwright.optim.SGD(parameters(SHAPES), lr=0.05), 2))
    underivable()
    assert_same(train(in_another_process(cls)(parameters(SHAPES)), 2), halved)


def test_what_no_text_tells_is_derived_in_every_process(monkeypatch: pytest.MonkeyPatch, underivable: Any) -> None:
    monkeypatch.setattr(states, "_digest", lambda *_: None)
    cls = opwright.optimizer()(reading_a_number)
    train(in_another_process(cls)(parameters(SHAPES)), 1)
    underivable()
    with pytest.raises(FallbackRefused, match="nothing may be derived"):
        train(in_another_process(cls)(parameters(SHAPES)), 1)


def test_tuples_of_other_lengths_have_kernels_of_their_own() -> None:
    groups = [{"params": [param]} for param in parameters(((4, 3), (4, 3)))]
    groups[1]["betas"] = (0.9, 0.5, 0.1)  # type: ignore[typeddict-item]
    made = train(Recorded(groups), 2)
    assert_same(made, train(Recorded(parameters(((4, 3), (4, 3)))), 2))


@pytest.mark.nightly
def test_a_second_process_imports_nothing_that_derives() -> None:
    text = """
import sys, torch, opwright
param = torch.ones(5, 4, requires_grad=True)
param.grad = torch.ones(5, 4)
opwright.optim.Lion([param], lr=0.5).step()
print(param[0, 0].item(), "opwright.operators.updates" in sys.modules)
"""
    said = [run("-c", text).stdout.split() for _ in range(2)]
    assert said[0][0] == said[1][0] == "0.5"
    assert said[1][1] == "False"
