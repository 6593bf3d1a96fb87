"""A finding of the doctor: something that opwright uses, its state, and the command that fixes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["works", "limited", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing, looked at.

    Attributes:
        name: What was looked at.
        state: "works"; "limited" where something is missing that opwright does without; "broken" where it is not itself
            without it.
        detail: What there is, or what is missing and the consequence.
        remedy: The command that mends it; None where there is nothing to mend, or no command can.
    """

    name: str
    state: State
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """All findings on this machine.

    Attributes:
        findings: In the order in which one depends on another.
    """

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that opwright needs works."""
        return all(finding.state != "broken" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the findings, fit for JSON."""
        return {"passed": self.passed, "findings": [asdict(finding) for finding in self.findings]}
