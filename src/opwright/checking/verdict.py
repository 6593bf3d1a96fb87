"""Verdict: what the checks found, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from opwright.checking.parts import whole_of
from opwright.report.shown import Shown

if TYPE_CHECKING:
    from rich.console import RenderableType

Status = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Row:
    """What one check of one rung found on one sample.

    Attributes:
        rung: "function", "cpp", "cuda"; "operator" for the operator as a whole, "callable" for any other callable.
        check: The name of the check.
        sample: The name of the sample and its dtype; empty where no sample was used.
        status: "passed", "failed" or "skipped".
        detail: What is wrong, or why the check was skipped.
        error: The largest error against the reference in float64, relative to its largest value; None if not measured.
        eager_error: The same for the reference in the dtype of the sample.
    """

    rung: str
    check: str
    sample: str
    status: Status
    detail: str = ""
    error: float | None = None
    eager_error: float | None = None

    def __str__(self) -> str:
        where = f"{self.rung}, {self.check}" + (f", {self.sample}" if self.sample else "")
        return f"{self.status}: {where}: {self.detail}" if self.detail else f"{self.status}: {where}"


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Shown):
    """All rows of one subject. It passed if something was checked and nothing failed.

    Attributes:
        subject: The name of the operator or callable.
        rows: The findings, check by check.
        left_out: The checks that `only` or `quick` left out.
        quick: Whether this is the quick check, on the smallest sample.
        part: "i/n" if it is one of n parts, which passes if nothing failed; empty if it is whole.
    """

    subject: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()
    quick: bool = False
    part: str = ""

    @property
    def passed(self) -> bool:
        """Whether no row failed and at least one passed."""
        counts = Counter(row.status for row in self.rows)
        return (counts["passed"] > 0 or bool(self.part)) and counts["failed"] == 0

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as values that `json.dumps` takes."""
        rows = [{key: _jsonable(value) for key, value in asdict(row).items()} for row in self.rows]
        return {
            "subject": self.subject,
            "passed": self.passed,
            "quick": self.quick,
            **({"part": self.part} if self.part else {}),
            "left_out": list(self.left_out),
            "rows": rows,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Verdict:
        """The inverse of `to_json`, but for errors that are not finite."""
        rows = tuple(Row(**row) for row in found["rows"])
        return cls(found["subject"], rows, tuple(found["left_out"]), found["quick"], found.get("part", ""))

    def _table(self) -> RenderableType:
        from opwright.report.verdict_table import verdict_table  # imports rich

        return verdict_table(self.to_json())


SERVED = "served"
"""The check of whether a rung served any call."""


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of which these are all parts."""
    first = verdicts[0]
    steps = whole_of([[list(rows) for _, rows in groupby(each.rows, _step)] for each in verdicts])
    served = {
        row.rung for verdict in verdicts for row in verdict.rows if row.check == SERVED and row.status == "passed"
    }
    rows: dict[tuple[str, str, str], Row] = {}
    services: dict[str, Row] = {}
    for row in (row for step in steps for row in step):
        if row.check == SERVED:
            status: Status = "passed" if row.rung in served else "failed"
            services[row.rung] = Row(row.rung, SERVED, "", status, "" if row.rung in served else "it served no call")
        else:
            rows[row.rung, row.check, row.sample] = row
    rungs = list(dict.fromkeys(row.rung for row in rows.values()))
    checks = list(dict.fromkeys(row.check for row in rows.values()))
    in_order = sorted(rows.values(), key=lambda row: (rungs.index(row.rung), checks.index(row.check)))
    return Verdict(first.subject, (*in_order, *services.values()), first.left_out, first.quick)


def _step(row: Row) -> tuple[str, str]:
    return row.rung, row.check


def _jsonable(value: object) -> object:
    return None if isinstance(value, float) and not isfinite(value) else value
