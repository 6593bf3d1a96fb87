"""Results as rows for the page: what it says first, the verdict by checks, the audit by families."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from opwright.report.figures import error_beside, in_units, ratio

_PASSAGES = {"forward": "forward", "training": "forward and backward"}


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure, and what it is."""

    figure: str
    words: str
    mood: str = ""


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check: for each rung how it went, the worst error beside eager's, and what failed or was skipped."""

    name: str
    cells: tuple[tuple[str, str], ...]
    error: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """The rows of an audit that belong together."""

    name: str
    counts: str
    is_well: bool
    rows: tuple[Mapping[str, Any], ...]


def headlines(facts: Mapping[str, Any]) -> list[Headline]:
    """The figures that come first: verdict, kernels, what is saved, how fast."""
    found = []
    if facts["verdict"]:
        passed = facts["verdict"]["passed"]
        which = "the quick check" if facts["verdict"]["quick"] else "the check"
        found.append(Headline("passed" if passed else "failed", which, "good" if passed else "bad"))
    if facts["audit"]:
        passed = facts["audit"]["passed"]
        found.append(Headline("passed" if passed else "failed", "the audit", "good" if passed else "bad"))
    if facts["passes"]:
        kernels = [sum(step["kind"] == "kernel" for step in each["steps"]) for each in facts["passes"]]
        words = "kernels, forward and backward" if len(kernels) > 1 else "kernels, forward"
        found.append(Headline(" + ".join(map(str, kernels)), words))
        extra = sum(each["size_bytes"] for each in facts["saved"] if each["role"] == "intermediate")
        if len(kernels) > 1:
            found.append(Headline(in_units(extra) if extra else "nothing", "saved beside arguments and results"))
    if facts["bench"]:
        found += _speeds(facts["bench"])
    return found


def _speeds(bench: Mapping[str, Any]) -> list[Headline]:
    """The geometric mean, over the samples, of how much faster it is than the better of its peers."""
    found = []
    for passage, words in _PASSAGES.items():
        gains = [
            min(known)
            for entry in bench["entries"]
            if entry["contender"] in ("cpp", "cuda", "callable")
            and (known := [gain for gain in entry["speedup"][passage].values() if gain is not None])
        ]
        if gains:
            mean = exp(sum(map(log, gains)) / len(gains))
            found.append(
                Headline(ratio(mean), f"the speed of the better of its peers, {words}", "" if mean >= 1 else "bad")
            )
    return found


def verdict_rows(verdict: Mapping[str, Any]) -> tuple[list[str], list[CheckRow]]:
    """The rungs, and a row for each check."""
    rows = [row for row in verdict["rows"] if row["check"] != "available"]
    rungs = list(dict.fromkeys(row["rung"] for row in rows))
    return rungs, [_check_row(name, rungs, rows) for name in dict.fromkeys(row["check"] for row in rows)]


def _check_row(name: str, rungs: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> CheckRow:
    alike = [row for row in rows if row["check"] == name]
    measured = [row for row in alike if row["error"] is not None]
    worst = max(measured, key=lambda row: float(row["error"]), default={"error": None, "eager_error": None})
    remarks = {
        f"{row['rung']}{', ' + row['sample'] if row['sample'] and row['status'] == 'failed' else ''}: {row['detail']}"
        for row in alike
        if row["status"] != "passed" and row["detail"]
    }
    cells = tuple(_cell([row["status"] for row in alike if row["rung"] == rung]) for rung in rungs)
    return CheckRow(name, cells, error_beside(worst["error"], worst["eager_error"]), tuple(sorted(remarks)))


def _cell(statuses: Sequence[str]) -> tuple[str, str]:
    counts = Counter(statuses)
    if counts["failed"]:
        return f"failed {counts['failed']} of {len(statuses)}", "bad"
    if counts["passed"]:
        return f"{counts['passed']} passed", "good"
    return ("not checked" if statuses else "–"), "dim"


def audit_families(scorecard: Mapping[str, Any]) -> list[Family]:
    """The rows of an audit by families, with counts."""
    families: dict[str, list[Mapping[str, Any]]] = {}
    for row in scorecard["rows"]:
        families.setdefault(row["family"], []).append(row)
    return [_family(name, rows) for name, rows in families.items()]


def _family(name: str, rows: Sequence[Mapping[str, Any]]) -> Family:
    counts = Counter(row["state"] for row in rows)
    is_well = not counts["raises"] and not counts["silently wrong"]
    words = ", ".join(f"{count} {state}" for state, count in counts.items())
    return Family(name, words, is_well, tuple(rows))
