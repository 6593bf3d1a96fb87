"""Operators as methods: `self` binds, whatever it is."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import opwright
from tests.suite.nights import mostly_at_night

x = torch.linspace(-1, 1, 12).reshape(3, 4)


@opwright.operator
def tanh_of_scaled(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Assigned in class bodies."""
    return torch.tanh(x * self.scale)


class Plain:
    """An object with numbers and a tensor."""

    assigned = tanh_of_scaled

    def __init__(self, scale: float = 2.0) -> None:
        self.scale, self.table = scale, torch.randn(4, requires_grad=True)

    @opwright.operator
    def method(self, x: torch.Tensor, *, power: float = 2.0) -> torch.Tensor:
        """The same of its own."""
        return torch.sigmoid(x * self.scale) ** power + self.table.exp()

    @classmethod
    @opwright.operator
    def of_class(cls, x: torch.Tensor) -> torch.Tensor:
        """Of the class."""
        return torch.tanh(x) * len(cls.__name__)

    @opwright.operator
    @staticmethod
    def static(x: torch.Tensor) -> torch.Tensor:
        """Of nothing."""
        return torch.tanh(x) * 2

    @opwright.operator(mutates=("x",))
    def change(self, x: torch.Tensor) -> None:
        """Change an argument."""
        x.copy_(torch.tanh(x) * self.scale)


class Layer(nn.Module):
    """A module whose methods are operators, also its forward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    @opwright.operator
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return torch.tanh(self.norm(self.linear(x))) + x

    @opwright.operator
    def encode(self, x):  # type: ignore[no-untyped-def]
        """Compute something else."""
        return torch.sigmoid(self.linear(x)) * (2.0 if self.training else 3.0)


def test_methods_of_objects_read_the_object_as_it_is() -> None:
    torch.manual_seed(0)
    one, two = Plain(), Plain(3.0)
    for change in (lambda: None, lambda: setattr(one, "scale", 5.0), lambda: setattr(two, "table", torch.ones(4))):
        change()
        for _ in range(2):
            for owner in (one, two):
                torch.testing.assert_close(owner.method(x, power=3.0), Plain.method.reference(owner, x, power=3.0))
                torch.testing.assert_close(owner.assigned(x), tanh_of_scaled.reference(owner, x))
                assert (owner.method.last_rung, owner.assigned.last_rung) == ("cpp", "cpp")
    assert one.method == one.method
    assert one.method != two.method
    assert one.method.rungs() == one.method.operator.rungs()
    assert Plain.assigned is tanh_of_scaled
    (found,) = torch.autograd.grad(one.method(x).square().sum(), one.table)
    (expected,) = torch.autograd.grad(Plain.method.reference(one, x).square().sum(), one.table)
    torch.testing.assert_close(found, expected)


def test_methods_of_classes_and_of_nothing() -> None:
    torch.testing.assert_close(Plain.of_class(x), torch.tanh(x) * 5)
    torch.testing.assert_close(Plain().static(x), torch.tanh(x) * 2)
    assert Plain().static is Plain.static


def test_a_method_may_change_an_argument() -> None:
    given = x.clone()
    Plain().change(given)
    torch.testing.assert_close(given, torch.tanh(x) * 2)


@pytest.mark.parametrize("name", mostly_at_night(["forward", "encode"], by_day=1))
def test_methods_of_modules_take_its_tensors(name: str) -> None:
    torch.manual_seed(0)
    layer = Layer()
    reference = getattr(Layer, name).reference
    for change in (lambda: None, layer.eval, lambda: setattr(layer.linear, "weight", nn.Parameter(torch.randn(4, 4)))):
        change()
        for _ in range(2):
            found = layer(x) if name == "forward" else layer.encode(x)
            tensors = [*layer.linear.parameters()]
            expected = reference(layer, x)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
            gradients = [torch.autograd.grad(y.square().sum(), tensors) for y in (found, expected)]
            torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
            assert getattr(layer, name).last_rung == "cpp"


def test_a_served_module_may_have_methods_that_are_operators() -> None:
    torch.manual_seed(0)
    layer = Layer()
    served = opwright.module(nn.Sequential(layer, nn.ReLU()))
    for _ in range(2):
        torch.testing.assert_close(served(x), Layer.forward.reference(layer, x).relu(), rtol=1e-4, atol=1e-5)
        assert served.last_rung == "cpp"


def test_a_method_keeps_its_object_alive_no_longer_than_others_do() -> None:
    owner = Plain()
    owner.method(x)
    method, held = weakref.ref(owner.method.operator), weakref.ref(owner)
    del owner
    gc.collect()
    gc.collect()  # the operator, which the object's end has let go
    assert held() is None
    assert method() is None


class Closed:
    """An object to which there are no weak references."""

    __slots__ = ("scale",)

    @opwright.operator
    def closed_method(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        return torch.tanh(x) * self.scale


@pytest.mark.falls_back
def test_an_object_without_weak_references_runs_the_function() -> None:
    owner = Closed()
    owner.scale = 2.0
    with pytest.warns(opwright.FallbackWarning, match="no weak references to a Closed"):
        torch.testing.assert_close(owner.closed_method(x), torch.tanh(x) * 2)
