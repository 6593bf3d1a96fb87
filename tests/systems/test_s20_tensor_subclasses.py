"""S20: tensor subclasses: the lowest class comes out, unrelated ones do not mix, and a call is logged once."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch

import opwright


class LoggingTensor(opwright.tensors.Logging):
    lines: ClassVar[list[str]] = []

    @classmethod
    def note(cls, call: Any) -> None:
        cls.lines.append(str(call))


class Lower(LoggingTensor):
    """A subclass of a subclass."""


class Sibling(opwright.tensors.Logging):
    """Related to LoggingTensor by what both are made of alone."""


class Verbose(opwright.tensors.Logging):
    """Shows the tensors themselves, as the documents' example does, which recurses there."""

    lines: ClassVar[list[str]] = []

    @classmethod
    def note(cls, call: Any) -> None:
        cls.lines.append(f"{call.name} beside {cls([1.0])!r} and {cls([2.0]) * 2}")


@pytest.fixture(autouse=True)
def no_lines() -> None:
    LoggingTensor.lines.clear()
    Verbose.lines.clear()


def test_results_are_of_the_type() -> None:
    assert type(LoggingTensor([0.0]) + torch.ones(1)) is LoggingTensor
    assert type(torch.ones(1) + LoggingTensor([0.0])) is LoggingTensor
    assert type(torch.stack([LoggingTensor([0.0]), torch.ones(1)])) is LoggingTensor


def test_results_of_mixed_calls_are_of_the_lowest_subclass() -> None:
    base, lower = LoggingTensor([1.0]), Lower([2.0])
    assert type(base + lower) is type(lower + base) is type(torch.add(base, lower)) is Lower


def test_unrelated_siblings_raise() -> None:
    with pytest.raises(TypeError):
        torch.add(LoggingTensor([0.0]), Sibling([1.0]))
    with pytest.raises(TypeError):
        LoggingTensor([0.0]) + Sibling([1.0])


def test_every_call_is_logged_once_and_repr_calls_none() -> None:
    x = LoggingTensor([1.0, 2.0])
    y = torch.nn.functional.relu(x * 2).sum()
    assert [line.split("(")[0] for line in LoggingTensor.lines] == [
        "torch.Tensor.mul",
        "torch.nn.functional.relu",
        "torch.Tensor.sum",
    ]
    assert repr(y) == "LoggingTensor(tensor(6.))"
    assert len(LoggingTensor.lines) == 3


def test_a_note_may_show_the_tensors() -> None:
    Verbose([3.0]).add(1)
    assert Verbose.lines == ["torch.Tensor.add beside Verbose(tensor([1.])) and Verbose(tensor([4.]))"]


def test_it_works_as_a_parameter_of_a_module_under_functional_call() -> None:
    layer = torch.nn.Linear(2, 1)
    found = torch.func.functional_call(
        layer, {"weight": LoggingTensor([[1.0, 2.0]]), "bias": torch.zeros(1)}, torch.ones(2)
    )
    assert type(found) is LoggingTensor
    assert found.item() == 3


def test_gradients_are_those_of_tensors() -> None:
    x = LoggingTensor([1.0, 2.0]).requires_grad_()
    (x**3).sum().backward()
    assert x.grad.tolist() == [3, 12]
