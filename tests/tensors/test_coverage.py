"""Coverage reports planted faults, and none on the faultless twin."""

from __future__ import annotations

import json

import pytest
import torch

from opwright.errors import HandlerRefused, SamplesMissing
from opwright.tensors import CoverageReport, Like, coverage
from opwright.tensors.coverage.aten import core_operations
from opwright.tensors.spellings.table import spelling_of, spellings
from tests.tensors.planted import FAULTS, Owned, sample, with_fault


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_reported(name: str) -> None:
    family, function, where, fault = FAULTS[name]
    cls = with_fault(function, fault)
    report = coverage(cls, [sample(cls)], metadata=("owner",), only=[family])
    own = spelling_of(function).name
    assert own in {entry.name for entry in getattr(report, where)}, repr(report)
    assert where == "failing" or not report.passed


def test_nothing_is_reported_on_the_faultless_twin_of_them() -> None:
    report = coverage(Owned, [sample()], metadata=("owner",), only=[family for family, *_ in FAULTS.values()])
    assert report.passed, repr(report)
    assert report.failing == ()
    assert len(report.handled) > 60


@pytest.mark.nightly
def test_nothing_is_reported_on_the_whole_faultless_twin() -> None:
    report = coverage(Owned, [sample()], metadata=("owner",))
    faults = {entry.name for entry in (*report.wrong, *report.disagreeing, *report.signatures)}
    assert faults <= DETACHED, repr(report)


DETACHED: set[str] = set()


class Doubled(Like):
    """Twice the identity."""

    def __init__(self, n: int) -> None:
        self.n = n

    def densify(self) -> torch.Tensor:
        return 2 * torch.eye(self.n)


@Doubled.implements(torch.add, partial=True)
def add(input, other):
    dense = [each.densify() if isinstance(each, Doubled) else each for each in (input, other)]
    return torch.add(*dense)


def test_a_like_tells_how_it_serves() -> None:
    report = coverage(Doubled, [Doubled(3)], only=["add", "exp", "numel"])
    by_name = {entry.name: entry for entry in report.entries}
    assert by_name["torch.add"].how == "handled"
    assert by_name["torch.add"].signature == "does not take alpha"
    assert by_name["torch.Tensor.__radd__"].how == "by rule"
    assert by_name["torch.exp"].how == "fails"
    assert "torch.exp is not handled by Doubled" in by_name["torch.exp"].detail
    assert by_name["torch.numel"].how == "handled"
    Doubled.fallback("densify")
    try:
        assert {entry.how for entry in coverage(Doubled, [Doubled(3)], only=["expm1"]).fallback} == {"fallback"}
    finally:
        Doubled.fallback("refuse")


def test_a_report_counts_every_function_and_can_be_written() -> None:
    report = coverage(Doubled, [Doubled(3)], only=["add", "bincount"])
    assert isinstance(report, CoverageReport)
    assert not report.passed  # alpha
    said = json.loads(json.dumps(report.to_dict()))
    assert sum(said["counts"][how] for how in ("handled", "by rule", "fallback", "fails", "wrong", "not tried")) == len(
        report.entries
    )
    assert {entry.name for entry in report.not_tried} == {"torch.bincount", "torch.Tensor.bincount"}
    page = report.page("Doubled")
    assert page.startswith("# Doubled\n")
    assert "`torch.add`" in page
    assert "Doubled: FAILED" in repr(report)
    assert "does not take alpha" in repr(report)
    assert "<pre" in report._repr_html_()


def test_refusals() -> None:
    with pytest.raises(SamplesMissing, match="there is no sample of Doubled"):
        coverage(Doubled, [])
    with pytest.raises(HandlerRefused, match="a sample is a int"):
        coverage(Doubled, [1])
    with pytest.raises(HandlerRefused, match="there is no function nonsense"):
        coverage(Doubled, [Doubled(2)], only=["nonsense"])


def test_core_operations_are_those_of_this_pytorch() -> None:
    names = {spelling.name for spelling, _ in core_operations()}
    assert {"aten.add.Tensor", "aten.convolution.default", "aten.view.default"} <= names
    assert len(names) > 150


@pytest.mark.nightly
def test_all_functions_are_in_a_report() -> None:
    report = coverage(Doubled, [Doubled(3)])
    assert len(report.entries) == len(spellings())
    assert not report.wrong
    assert not report.disagreeing
