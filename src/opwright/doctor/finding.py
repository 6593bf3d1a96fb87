"""A finding of the doctor: something that opwright uses, its state, and the command that fixes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["works", "limited", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one thing.

    Attributes:
        name: The thing.
        state: "works"; "limited" if opwright can do without what is missing; "broken" if it cannot.
        detail: What was found, or what is missing and the consequence.
        remedy: The command that fixes it; None if nothing needs fixing, or no command can.
    """

    name: str
    state: State
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """All findings on this machine.

    Attributes:
        findings: The findings, each after those that it depends on.
    """

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that opwright needs works."""
        return all(finding.state != "broken" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the findings as values that `json.dumps` takes."""
        return {"passed": self.passed, "findings": [asdict(finding) for finding in self.findings]}
