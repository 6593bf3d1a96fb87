"""Which type is asked first: by PyTorch's rule, in real calls."""

from __future__ import annotations

import itertools
import json

import pytest
import torch

from opwright.errors import HandlerRefused
from opwright.tensors import Like, PrecedenceReport, precedence
from opwright.tensors.like.operators import order
from tests.tensors.wrapped import Meta, Pair, Sub


class Base(Like):
    def densify(self):
        return torch.ones(2, 2)


class Below(Base):
    pass


class Apart(Like):
    def densify(self):
        return torch.full((2, 2), 3.0)


class Refusing(Like):
    def densify(self):
        return torch.ones(2, 2)


class Subclass(torch.Tensor):
    pass


class Sibling(torch.Tensor):
    pass


@Base.implements(torch.add)
def add(input, other, *, alpha=1):
    return "Base"


@Below.implements(torch.add)
def add_below(input, other, *, alpha=1):
    return NotImplemented


Apart.fallback("densify")


def called(report: PrecedenceReport, function: str, *arguments: type):
    (found,) = (
        meeting
        for meeting in report.meetings
        if meeting.function == function and meeting.arguments == tuple(each.__name__ for each in arguments)
    )
    return found


def test_subclasses_come_before_superclasses_then_from_left_to_right():
    assert order([Base, Below]) == order([Below, Base]) == (Below, Base)
    assert order([Apart, Base]) == (Apart, Base)
    assert order([Apart, Base, Below, Base]) == (Apart, Below, Base)


def test_torch_asks_in_that_order():
    types = (Base, Below, Apart, Subclass, Sibling)
    report = precedence(*types)
    assert len(report.meetings) == 20 + 60
    assert all(meeting.as_ruled for meeting in report.meetings), repr(report)
    assert any(len(meeting.asked) == 3 for meeting in report.meetings)


def test_not_implemented_passes_on():
    report = precedence(Base, Below)
    for arguments in itertools.permutations((Base, Below)):
        meeting = called(report, "add", *arguments)
        assert [each.type for each in meeting.asked] == ["Below", "Base"]
        assert meeting.refused == ("Below",)
        assert (meeting.outcome, meeting.raised) == ("str", False)


def test_all_not_implemented_is_a_type_error():
    meeting = called(precedence(Subclass, Sibling), "add", Subclass, Sibling)
    assert meeting.refused == ("Subclass", "Sibling")
    assert meeting.raised
    assert meeting.outcome.startswith("TypeError")
    with pytest.raises(TypeError):
        torch.add(torch.ones(2).as_subclass(Subclass), torch.ones(2).as_subclass(Sibling))


def test_a_type_that_refuses_a_function_leaves_it_to_others():
    report = precedence(Base, Apart, functions=[torch.mul])
    assert called(report, "mul", Base, Apart).refused == ("Base",)
    assert called(report, "mul", Base, Apart).raised  # Apart makes itself dense, and Base refuses that alone
    assert "torch.mul is not handled by Base" in called(report, "mul", Base, Apart).outcome


def test_samples_take_part_and_nothing_is_left_behind():
    class Sized(Like):
        def __init__(self, n):
            self.n = n

        def densify(self):
            return torch.ones(self.n, self.n)

    Sized.fallback("densify")
    report = precedence(Sized, torch.Tensor, samples={Sized: Sized(2), torch.Tensor: torch.ones(2, 2)})
    assert {meeting.outcome for meeting in report.meetings} == {"Tensor"}
    assert "__torch_function__" not in vars(Sized)


def test_a_report_can_be_shown_and_written():
    report = precedence(Base, Apart)
    assert "add(Base, Apart)" in repr(report)
    assert "refuses" in repr(report)
    assert json.loads(json.dumps(report.to_dict()))["types"] == ["Base", "Apart"]


def test_refusals():
    with pytest.raises(HandlerRefused, match="two or more"):
        precedence(Base)
    with pytest.raises(HandlerRefused, match="int has no __torch_function__"):
        precedence(Base, int)
    with pytest.raises(HandlerRefused, match="is no type"):
        precedence(Base(), Apart)  # type: ignore[arg-type]
    with pytest.raises(HandlerRefused, match="given twice"):
        precedence(Base, Base)
    with pytest.raises(HandlerRefused, match="the sample of Base is a int"):
        precedence(Base, Apart, samples={Base: 3})
    with pytest.raises(HandlerRefused, match="objects by their types"):
        precedence(Base, Apart, samples=[Base()])  # type: ignore[arg-type]


def test_wrappers_are_asked_after_types_with_torch_function():
    report = precedence(Apart, Meta, functions=torch.add)
    for arguments in ((Apart, Meta), (Meta, Apart)):
        meeting = called(report, "add", *arguments)
        assert meeting.order == ("Apart", "Meta")
        assert [each.type for each in meeting.asked] == ["Apart"]
        assert (meeting.outcome, meeting.raised) == ("Meta", False)  # Apart makes itself dense
    alone = precedence(Meta, Sub, torch.Tensor, samples={Meta: Meta(torch.ones(2, 2), "me")})
    assert called(alone, "add", Meta, Sub).outcome == "Sub"
    assert [each.type for each in called(alone, "add", Meta, Sub).asked] == ["Sub"]
    assert called(alone, "add", torch.Tensor, Meta).outcome == "Meta"
    assert all(meeting.as_ruled for meeting in (*report.meetings, *alone.meetings))
    assert "__torch_dispatch__" not in vars(Meta)


def test_wrappers_that_do_not_know_each_other_refuse():
    meeting = called(precedence(Meta, Pair), "add", Meta, Pair)
    assert meeting.refused == ("Meta", "Pair")
    assert meeting.outcome.startswith("TypeError")


def test_an_operator_with_a_wrapper_that_nobody_serves_says_so():
    with pytest.raises(TypeError, match=r"__radd__ is not handled by Refusing"):
        Meta(torch.ones(2, 2), "me") + Refusing()  # type: ignore[operator]
