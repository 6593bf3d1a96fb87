"""Coverage reports planted faults, and none on the faultless twin."""

from __future__ import annotations

import json

import pytest
import torch

from opwright.errors import HandlerRefused, SamplesMissing
from opwright.tensors import CoverageReport, Like, coverage
from opwright.tensors.covering.calls.aten import core_operations
from opwright.tensors.covering.calls.known import is_known
from opwright.tensors.covering.calls.plan import plans
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


@pytest.mark.parametrize("name", ["spoilt owner", "element not set", "fails with dim"])
def test_a_fault_is_said_where_it_is(name: str) -> None:
    family, function, _, fault = FAULTS[name]
    cls = with_fault(function, fault)
    report = coverage(cls, [sample(cls)], metadata=("owner",), only=[family, "cos"])
    entry = next(each for each in report.entries if each.name == spelling_of(function).name)
    said = {
        "spoilt owner": "it changes its argument: owner is 'another', not 'me'",
        "element not set": "its argument after the call: values differ",
        "fails with dim": "with keepdim=: TypeError: no implementation",
    }
    assert entry.detail.startswith(said[name])
    assert entry.signature == ""
    assert [each for each in report.wrong if each.family == "cos"] == []  # what is spoilt was put back


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
    with pytest.raises(HandlerRefused, match="'nonsense', which is no function"):
        coverage(Doubled, [Doubled(2)], only=["nonsense"])
    with pytest.raises(HandlerRefused, match="a Doubled is no type"):
        coverage(Doubled(2), [Doubled(2)])  # type: ignore[arg-type]
    with pytest.raises(HandlerRefused, match="what stands for a Doubled is a int, not a tensor"):
        coverage(Doubled, [Doubled(2)], dense=lambda value: 3)  # type: ignore[arg-type,return-value]
    with pytest.raises(HandlerRefused, match="cannot be made dense: AttributeError"):
        coverage(Doubled, [Doubled(2)], dense=lambda value: value.nothing)
    with pytest.raises(HandlerRefused, match="a sample of Doubled has no owner"):
        coverage(Doubled, [Doubled(2)], metadata=["owner"])


def test_one_sample_and_one_name_need_no_list() -> None:
    assert len(coverage(Doubled, Doubled(2), only="abs").entries) > 3  # type: ignore[arg-type]


def test_core_operations_are_those_of_this_pytorch() -> None:
    names = {spelling.name for spelling, _ in core_operations()}
    assert {"aten.add.Tensor", "aten.convolution.default", "aten.view.default"} <= names
    assert len(names) > 150


@pytest.mark.parametrize("shape", [(3, 3), (1, 2, 3), (1, 2, 3, 3)])
def test_operations_for_which_calls_are_known_run(shape: tuple[int, ...]) -> None:
    dense = torch.rand(shape, dtype=torch.float64)
    known = [(spelling, overloads) for spelling, overloads in core_operations() if is_known(spelling.function)]
    assert len(known) == 10
    found = {spelling.name: plans(spelling.function, overloads, dense) for spelling, overloads in known}
    missing = {name for name, its in found.items() if not its}
    assert missing == (
        {
            "aten._adaptive_avg_pool2d_backward.default",
            "aten.avg_pool2d_backward.default",
            "aten.convolution_backward.default",
            "aten.max_pool2d_with_indices_backward.default",
            "aten.native_group_norm_backward.default",
        }
        if len(shape) == 2
        else set()
    )


@pytest.mark.nightly
def test_all_functions_are_in_a_report() -> None:
    report = coverage(Doubled, [Doubled(3)])
    assert len(report.entries) == len(spellings())
    assert not report.wrong
    assert not report.disagreeing
