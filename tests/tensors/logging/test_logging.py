"""Tensors that log, and logging a block: every call once, without recursion."""

from __future__ import annotations

import copy
import pickle
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

import opwright
from opwright.tensors import Logging, log
from tests.tensors.wrapped import Meta


@opwright.operator
def logged_gate(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return torch.sigmoid(x) * x * factor


@opwright.operator
def logged_members(given: list[torch.Tensor]) -> torch.Tensor:
    return torch.sigmoid(given[0]) * given[1]


@opwright.operator(mutates=("x",))
def logged_change(x: torch.Tensor) -> None:
    x.mul_(2).add_(torch.sigmoid(x))


class Logged(Logging):
    """Prints."""


class Kept(Logging):
    calls: ClassVar[list[str]] = []

    @classmethod
    def note(cls, call: Any) -> None:
        cls.calls.append(str(call))


class Curious(Logging):
    """Its note calls what would be noted."""

    seen: ClassVar[list[str]] = []

    @classmethod
    def note(cls, call: Any) -> None:
        cls.seen.append(repr(cls([1.0]) + 1))


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    Kept.calls.clear()
    Curious.seen.clear()


def test_each_call_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    x = Logged([1.0, 2.0])
    y = torch.add(x, torch.ones(2), alpha=3)
    assert type(y) is Logged
    assert (y * 2).shape == (2,)
    assert capsys.readouterr().out.splitlines() == [
        "torch.add(Logged[2] float32, Tensor[2] float32, alpha=3)",
        "torch.Tensor.mul(Logged[2] float32, 2)",
    ]


def test_its_repr_is_its_values_and_calls_nothing() -> None:
    x = Kept(torch.ones(2, requires_grad=True) * 2)
    assert repr(x) == str(x) == "Kept(tensor([2., 2.]))"
    assert Kept.calls == []


def test_what_a_note_calls_is_not_noted() -> None:
    Curious([1.0]).exp()
    assert Curious.seen == ["Curious(tensor([2.]))"]


@pytest.mark.parametrize(
    ("called", "said"),
    [
        (lambda x: x + 1, "torch.Tensor.add(Kept[3] float32, 1)"),
        (lambda x: 1 - x, "torch.Tensor.__rsub__(Kept[3] float32, 1)"),
        (lambda x: x.add_(1), "torch.Tensor.add_(Kept[3] float32, 1)"),
        (lambda x: x[0], "torch.Tensor.__getitem__(Kept[3] float32, 0)"),
        (lambda x: torch.cat([x, torch.ones(1)]), "torch.cat([Kept[3] float32, Tensor[1] float32])"),
        (
            lambda x: nn.functional.softmax(x, dim=0),
            "torch.nn.functional.softmax(Kept[3] float32, dim=0, _stacklevel=3, dtype=None)",
        ),
        (
            lambda x: nn.functional.linear(x, torch.ones(2, 3)),
            "torch.nn.functional.linear(Kept[3] float32, Tensor[2, 3] float32)",
        ),
        (lambda x: x.real, "torch.Tensor.real.__get__(Kept[3] float32)"),
        (lambda x: torch.max(x, 0), "torch.max(Kept[3] float32, 0)"),
    ],
)
def test_one_line_for_one_call(called: Any, said: str) -> None:
    result = called(Kept([1.0, 2.0, 3.0]))
    assert Kept.calls == [said]
    for member in result if isinstance(result, tuple) else (result,):
        assert type(member) is Kept


def test_questions_are_no_calls() -> None:
    x = Kept([1.0])
    assert (x.shape, x.dtype, x.requires_grad, x.is_leaf, x.ndim) == ((1,), torch.float32, False, True, 1)
    assert Kept.calls == []


def test_gradients_copies_and_pickles() -> None:
    x = Kept([1.0, 2.0]).requires_grad_()
    (x * x).sum().backward()
    assert torch.equal(x.grad.as_subclass(torch.Tensor), torch.tensor([2.0, 4.0]))
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x.detach()))):
        assert type(twin) is Kept
        assert twin.tolist() == [1, 2]


def test_a_wrapper_beside_it_keeps_its_type() -> None:
    result = Kept([1.0, 2.0]) + Meta(torch.ones(2), "me")
    assert result.owner == "me"
    assert len(Kept.calls) == 1


def test_unrelated_types_do_not_mix() -> None:
    with pytest.raises(TypeError):
        torch.add(Kept([1.0]), Logged([1.0]))
    assert Kept.calls == []


def test_what_is_told_of_calls_is_a_function() -> None:
    with pytest.raises(TypeError, match="log: 3 is no function"), log(3):  # type: ignore[arg-type]
        pass


def test_plain_tensors_are_logged_in_a_block() -> None:
    x = torch.ones(3)
    with log() as calls:
        nn.functional.gelu(x.view(3, 1)).sum()
        assert x.shape == (3,)
    x.exp()
    assert [*map(str, calls)] == [
        "torch.Tensor.view(Tensor[3] float32, 3, 1)",
        "torch.nn.functional.gelu(Tensor[3, 1] float32)",
        "torch.Tensor.sum(Tensor[3, 1] float32)",
    ]


def test_a_block_in_a_block_is_heard_by_both() -> None:
    with log() as outer, log() as inner:
        torch.ones(1)
    assert [*map(str, outer)] == [*map(str, inner)] == ["torch.ones(1)"]


def test_an_operator_is_one_call_and_runs_its_kernels() -> None:
    x = torch.randn(3)
    expected, said = logged_gate(x), []
    with log(said.append) as calls:
        found = logged_gate(x)
        rung = logged_gate.last_rung
        logged_members([x, x])
        logged_change(x)
    assert torch.equal(found, expected)
    assert rung == "cpp"
    assert [call.name for call in calls] == ["logged_gate", "logged_members", "logged_change"]
    assert str(calls[0]) == "logged_gate(Tensor[3] float32, 2.0)"
    assert calls == said


def test_other_modes_still_see_the_operations() -> None:
    class Seeing(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    seen: list[Any] = []
    with Seeing():
        logged_gate(torch.ones(3))
    assert torch.sigmoid in seen


def test_records_hold_no_tensors() -> None:
    with log() as calls:
        torch.ones(2, 3).add(torch.ones(3), alpha=2)
    call = calls[-1]
    assert call.arguments == ("Tensor[2, 3] float32", "Tensor[3] float32")
    assert call.by_name == {"alpha": "2"}
