"""check(mesh=…): rules are judged in processes of their own, and wrong ones are found."""

from __future__ import annotations

import pytest
import torch

import opwright
from opwright.sharding import check
from tests.sharding.checked import judge_a_wrong_rule, spread_scaled_rows, spread_softmax_of_rows


def test_a_mesh_has_two_processes_or_more() -> None:
    with pytest.raises(ValueError, match="mesh=2 or more"):
        spread_scaled_rows.check(mesh=1)


def test_what_other_processes_cannot_import_is_told() -> None:
    @opwright.operator(samples=opwright.shapes("2 3"))
    def spread_locally(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    (row,) = spread_locally.check(mesh=2).rows
    assert row.status == "skipped"
    assert "define it in a module" in row.detail


@pytest.mark.nightly
@pytest.mark.seconds(400)
def test_every_rule_is_judged_on_even_uneven_and_empty_parts() -> None:
    verdict = spread_scaled_rows.check(mesh=4, dtypes=(torch.float32,))
    assert verdict.passed, verdict.rows
    assert {row.status for row in verdict.rows} == {"passed"}
    of_rows = [row.sample for row in verdict.rows if row.sample.startswith("x dimension 0, ")]
    assert [sample.partition(", size ")[2] for sample in of_rows] == [f"{size} of the axis" for size in (8, 7, 5)]


@pytest.mark.nightly
@pytest.mark.seconds(400)
def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "judge_rules", judge_a_wrong_rule)
    verdict = spread_softmax_of_rows.check(mesh=2, dtypes=(torch.float32,))
    assert not verdict.passed
    assert any("is wrong by" in row.detail for row in verdict.rows)
