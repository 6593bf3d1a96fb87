"""Scorecard: what an audit found, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from opwright.checking.parts import whole_of
from opwright.report.shown import Shown

if TYPE_CHECKING:
    from rich.console import RenderableType

State = Literal["pass", "raises", "silently wrong", "torch itself raises", "skipped"]
STATES: tuple[State, ...] = get_args(State)
RED: frozenset[State] = frozenset({"raises", "silently wrong"})


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one experiment.

    Attributes:
        family: The family of the row, such as "torch.func".
        name: The name of the row, such as "jvp of jvp".
        state: "pass"; "raises", if the reference does not; "silently wrong", if the reference gives another result;
            "torch itself raises", if the reference raises too; or "skipped".
        detail: The difference, the message, or why the row was skipped.
    """

    family: str
    name: str
    state: State
    detail: str = ""

    def __str__(self) -> str:
        row = f"{self.state}: {self.family}, {self.name}"
        return f"{row}: {self.detail}" if self.detail else row


@dataclass(frozen=True, slots=True, repr=False)
class Scorecard(Shown):
    """All rows of one subject. It passed if at least one row passed and none is red.

    Attributes:
        subject: Its name.
        rows: The rows, family by family.
        part: "i/n" if it is one of n parts, which passes if none is red; empty if it is whole.
    """

    subject: str
    rows: tuple[Row, ...]
    part: str = ""

    @property
    def passed(self) -> bool:
        """Whether no row raises or is silently wrong, and at least one passed."""
        return not self.red and (bool(self.part) or any(row.state == "pass" for row in self.rows))

    @property
    def red(self) -> tuple[Row, ...]:
        """The rows that raise or are silently wrong."""
        return tuple(row for row in self.rows if row.state in RED)

    def to_json(self) -> dict[str, Any]:
        """Return the scorecard as values that `json.dumps` takes."""
        part = {"part": self.part} if self.part else {}
        return {"subject": self.subject, "passed": self.passed, **part, "rows": [asdict(row) for row in self.rows]}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Scorecard:
        """The inverse of `to_json`."""
        return cls(found["subject"], tuple(Row(**row) for row in found["rows"]), found.get("part", ""))

    def _table(self) -> RenderableType:
        from opwright.report.audit_table import audit_table  # imports rich

        return audit_table(self.to_json())


def together(scorecards: Sequence[Scorecard]) -> Scorecard:
    """The scorecard of which these are all parts."""
    return Scorecard(scorecards[0].subject, tuple(whole_of([each.rows for each in scorecards])))
